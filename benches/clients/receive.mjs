// The official npm client on the same blast: `node receive.mjs NODE_MODULES RUNTIME ARGS…`. For every number on stdin it
// asks for a blast of as many notifications, takes them all, and prints a line. Started by peers.rs.
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

const [modules, command, ...args] = process.argv.slice(2)
const { HarnessClient } = await import(pathToFileURL(`${modules}/@deepseek-ai/dsh-sdk-client/lib/index.js`))
const client = new HarnessClient({ command, args })
client.start()
const events = client.subscribe()
for await (const line of createInterface({ input: process.stdin })) {
  const answer = client.request('blast')
  for (let left = Number(line); left > 0; left -= 1) {
    if (events.tryNext() === undefined) await events.next()
  }
  await answer
  console.log('done')
}
await client.close()

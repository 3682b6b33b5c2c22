// The transport of the reference server on the work of serve.rs: answers every request, and for every notification sends
// events.
// usage: node serve.mjs PACKAGE_DIR EVENTS
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
const { JsonRpcLineTransport } = await import(pathToFileURL(resolve(process.argv[2], 'lib/index.js')).href)
const events = Number(process.argv[3])
const transport = new JsonRpcLineTransport(process.stdin, process.stdout)
transport.onRequest(async () => ({}))
transport.onNotification(async () => {
  for (let seq = 0; seq < events; seq++) {
    const data = {
      turn: 1,
      step: 2,
      callId: 'toolu_0123456789abcdef',
      name: 'bash',
      arguments: '{"command": "cargo test --features cli --test it -- server 2>&1 | tail -40"}',
    }
    transport.notify('session.event', { sessionId: 's', event: { type: 'tool/call', seq, time: Date.now(), data } })
    if (seq % 1000 === 999) await transport.flush()
  }
})
transport.start()

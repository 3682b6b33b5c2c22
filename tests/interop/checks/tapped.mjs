#!/usr/bin/env node
/*
 * One conversation with the official TypeScript client; prints what it made of it, one JSON line a run.
 *
 *   node tapped.mjs --server PATH --home DIR --cwd DIR --model-url URL --modules DIR
 */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'

const text = { type: 'string' }
const { values: args } = parseArgs({
  options: { 'server': text, 'home': text, 'cwd': text, 'model-url': text, 'modules': text },
})
const file = join(args.modules, 'node_modules/@deepseek-ai/dsh-sdk-client/lib/index.js')
const { DeepSeekHarness } = await import(pathToFileURL(file).href)
const env = {
  ...process.env, DSH_HOME: args.home, DEEPSEEK_BASE_URL: args['model-url'], DEEPSEEK_API_KEY: 'k', DSH_TELEMETRY_MODE: 'DISABLED',
}
const launch = { command: args.server, args: ['--profile', 'sdk-minimal'], cwd: args.cwd, env, shutdownTimeoutMs: 10000 }
const harness = new DeepSeekHarness({ launch })
const print = (...values) => console.log(JSON.stringify(values))
try {
  await harness.start()
  for (const prompt of ['hello', '@bash echo hi', '@maxtokens', '@error 400', '@unicode', 'lone \ud83d surrogate']) {
    const result = await harness.run(prompt)
    print(prompt, result.finalResponse, result.notifications.map(n => n.method), result.events.map(e => e.type))
  }
  const both = ['a', 'b'].map(name => harness.run(`@drip 0.05 for ${name}`, { sessionId: name }))
  for (const { finalResponse, events } of await Promise.all(both)) print(finalResponse, events.map(e => e.type))
  await harness.client.request('nope', {}).catch(error => print(error.name, error.code, error.message))
} finally {
  await harness.close()
}

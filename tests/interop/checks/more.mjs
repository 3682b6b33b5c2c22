#!/usr/bin/env node
/*
 * Further checks of a runtime by both npm clients; they need the directives of `dsh-wire serve`.
 *
 *   node more.mjs --server PATH --modules DIR
 */
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'

const { values: args } = parseArgs({ options: { server: { type: 'string' }, modules: { type: 'string' } } })
let failures = 0
function check(name, good, detail = '') {
  console.log(`${good ? 'ok  ' : 'FAIL'} ${name} ${detail}`)
  if (!good) failures += 1
}
async function fails(name, call, text) {
  const started = performance.now()
  try {
    await call()
    check(name, false, 'no error')
  } catch (error) {
    check(name, error.message.includes(text) && performance.now() - started < 20000, error.message.slice(0, 90))
  }
}
const count = (result, type) => result.events.filter(event => event.type === type).length
const reason = result => result.events.findLast(event => event.type === 'turn/end').data.reason

async function drive(kind, module) {
  const { DeepSeekHarness } = await import(pathToFileURL(join(args.modules, 'node_modules', module)).href)
  const home = mkdtempSync(join(tmpdir(), 'ts-home-'))
  const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'ts-ws-')))
  mkdirSync(join(cwd, 'sub'))
  const env = { ...process.env, DSH_HOME: home }
  const make = () => kind === 'official'
    ? new DeepSeekHarness({ launch: { command: args.server, args: ['--profile', 'sdk'], cwd, env, shutdownTimeoutMs: 10000 } })
    : new DeepSeekHarness({ launchArgsOverride: [args.server, '--profile', 'sdk'], cwd, env, shutdownTimeoutMs: 10000 })
  console.log(`--- ${kind}`)
  const harness = make()
  await harness.start()
  const run = (text, sessionId = 's') => harness.run(text, { sessionId })
  let result = await run('@bash echo one && @bash echo two && @say done')
  check('three steps', count(result, 'step/start') === 3 && result.finalResponse === 'done')
  check('tool results', count(result, 'tool/result') === 2)
  check('seq without a gap', result.events.every((event, index, all) => event.seq === all[0].seq + index))
  check('receipt first, turn end last', result.events[0].type === 'agent/inbox/spliced' && result.events.at(-1).type === 'turn/end')
  result = await run('@flood 2000 500')
  check('flood', count(result, 'dsh-wire/flood') === 2000)
  result = await run('@long 100000')
  check('long answer', result.finalResponse.length === 100000)
  result = await run('x'.repeat(1000000))
  check('prompt of a megabyte', result.finalResponse === 'echo of 1000000 characters')
  result = await run('@error 500 1')
  check('retry', result.finalResponse === 'recovered' && count(result, 'llm/retry') === 1)
  result = await run('@cut')
  check('a stream that breaks off', reason(result).error.code === 'STREAM_CLOSED')
  result = await run('@panic')
  check('panic', reason(result).kind === 'error')
  result = await run('@ask approval/ask {}')
  check('request is refused', result.finalResponse.includes('-32601'), result.finalResponse)
  result = await run('@agent @say from the child', 'd')
  check('sub-agent started', result.notifications.some(n => n.method === 'subagent.started'))
  await harness.client.request('session/wait', { sessionId: 'd' })
  result = await run('after', 'd')
  check('parent goes on', result.finalResponse === 'echo: after')
  for (const id of ['../x', '\u4f60 \u2028', 'lone \ud83d', '\'"\\']) {
    result = await run('hi', id)
    check(`session id ${JSON.stringify(id)}`, result.finalResponse === 'echo: hi')
  }
  const set = path => harness.client.request('session/working-directory/set', { sessionId: 'e', path })
  check('directory', (await set('sub')).cwd === join(cwd, 'sub'))
  await fails('directory that is none', () => set('/no/such'), 'does not exist')
  const all = await Promise.all([...Array(8).keys()].map(n => run(`@slow 0.2 ${n}`, `t${n}`)))
  check('eight sessions at once', all.every((one, n) => one.finalResponse === String(n)))
  await fails('wait for a ghost', () => harness.client.request('session/wait', { sessionId: 'ghost' }), 'unknown SDK session')
  await harness.client.request('session/prompt', { sessionId: 'z', contentBlocks: [{ type: 'text', text: '@slow 60 never' }] })
  const closing = performance.now()
  await harness.close()
  check('close in mid-turn is quick', performance.now() - closing < 5000)
  const dying = make()
  await dying.start()
  await fails('death', () => dying.run('@die 3', { sessionId: 'dying' }), '')
  await dying.close()
  rmSync(home, { recursive: true, force: true })
  rmSync(cwd, { recursive: true, force: true })
}

await drive('official', '@deepseek-ai/dsh-sdk-client/lib/index.js')
await drive('openma', '@openma/deepseek-harness-sdk/dist/index.js')
console.log(`${failures} failure(s)`)
process.exitCode = failures === 0 ? 0 : 1

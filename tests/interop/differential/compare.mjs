// Feeds a stream to the reference transport, cut at random, and holds what it dispatches against our trace of the stream.
// usage: node compare.mjs PACKAGE_DIR STREAM OUR_TRACE SEED
// Prints the first differences and the counts; the exit code is 1 if there is a difference.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { PassThrough } from 'node:stream'
import { pathToFileURL } from 'node:url'

const [packageDir, streamFile, oursFile, seed] = process.argv.slice(2)
const { JsonRpcLineTransport } = await import(pathToFileURL(resolve(packageDir, 'lib/index.js')).href)
const stream = readFileSync(streamFile)
const ours = readFileSync(oursFile)

// mulberry32
let state = Number(seed) >>> 0
function below(n) {
  state = (state + 0x6d2b79f5) >>> 0
  let t = state
  t = Math.imul(t ^ (t >>> 15), t | 1)
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
  return ((t ^ (t >>> 14)) >>> 0) % n
}

let at = 0
function nextOfOurs() {
  if (at >= ours.length) return undefined
  const end = ours.indexOf(10, at)
  const text = ours.toString('utf8', at, end)
  at = end + 1
  const row = JSON.parse(text)
  const line = row.line
  delete row.line
  return { line, row }
}

// Both as JavaScript writes them again, with members that the two forms spell in different ways made equal.
function normal({ kind, id, method, params, result, error }) {
  if (result === null) result = undefined
  if (error) error = { code: error.code ?? undefined, message: error.message, data: error.data }
  return JSON.stringify([kind, id, method, params, result, error])
}

const counts = { request: 0, notification: 0, response: 0, error: 0 }
let differences = 0
function put(theirs) {
  counts[theirs.error ? 'error' : theirs.kind] += 1
  const mine = nextOfOurs()
  const [a, b] = [mine && normal(mine.row), normal(theirs)]
  if (a === b) return
  differences += 1
  if (differences <= 5) console.log(`line ${mine?.line}\n  ours:      ${short(a)}\n  reference: ${short(b)}`)
}
function short(text = 'nothing') {
  return text.length > 600 ? `${text.slice(0, 600)}… (${text.length} characters)` : text
}

const input = new PassThrough()
const transport = new JsonRpcLineTransport(input, new PassThrough().resume())
transport.handleIncomingRequest = async (id, method, params) => put({ kind: 'request', id, method, params })
transport.onNotification((method, params) => put({ kind: 'notification', method, params }))
// A call waits for every id, so that the transport's own reading of responses is what is compared.
transport.pending = {
  get: (id) => ({
    resolve: (result) => put({ kind: 'response', id, result }),
    reject: ({ code, message, data }) => put({ kind: 'response', id, error: { code, message, data } }),
  }),
  delete() {},
  clear() {},
  values: () => [],
}
transport.start()
const ended = new Promise((done) => input.once('end', done))
for (let from = 0; from < stream.length;) {
  const to = from + 1 + below([1, 16, 300, 65536][below(4)])
  if (!input.write(stream.subarray(from, to))) await new Promise((done) => input.once('drain', done))
  from = to
}
input.end()
await ended
await new Promise((done) => setTimeout(done, 50))
for (let extra = nextOfOurs(); extra; extra = nextOfOurs()) {
  differences += 1
  if (differences <= 5) console.log(`line ${extra.line}\n  ours:      ${short(normal(extra.row))}\n  reference: nothing`)
}
const { request, notification, response, error } = counts
console.log(`dispatched: ${request} requests, ${notification} notifications, ${response} results, ${error} errors; ${differences} differences`)
process.exitCode = differences === 0 && request > 0 && notification > 0 && response > 0 && error > 0 ? 0 : 1

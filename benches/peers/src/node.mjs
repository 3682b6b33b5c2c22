// Reads a corpus with the npm transport, once for each line on stdin, and prints the seconds of processor time.
// The corpus comes TIMES times on one connection.
// usage: node node.mjs PACKAGE_DIR CORPUS TIMES
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { PassThrough } from 'node:stream'
import { pathToFileURL } from 'node:url'
import { resolve } from 'node:path'
const { JsonRpcLineTransport } = await import(pathToFileURL(resolve(process.argv[2], 'lib/index.js')).href)
const bytes = readFileSync(process.argv[3])
const times = Number(process.argv[4])

async function pass() {
  const input = new PassThrough()
  const transport = new JsonRpcLineTransport(input, new PassThrough())
  let frames = 0
  // Requests are only counted: an answer is no part of reading.
  transport.handleIncomingRequest = async () => { frames++ }
  transport.handleIncomingResponse = () => { frames++ }
  transport.onNotification(() => { frames++ })
  const ended = new Promise((done) => input.on('end', done))
  transport.start()
  for (let time = 0; time < times; time++) {
    for (let at = 0; at < bytes.length; at += 65536) {
      if (!input.write(bytes.subarray(at, at + 65536))) await new Promise((done) => input.once('drain', done))
    }
  }
  input.end()
  await ended
  return frames
}

for await (const _ of createInterface({ input: process.stdin })) {
  const before = process.cpuUsage()
  const frames = await pass()
  const { user, system } = process.cpuUsage(before)
  console.log((user + system) / 1e6, frames)
}

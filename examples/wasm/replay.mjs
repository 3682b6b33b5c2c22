// Replays recordings through the core as a WASM module, whole and byte by byte, and holds the rows against a reading of
// the same bytes in plain JavaScript: decode, split, trim, JSON.parse, dispatch.
// usage: node --stack-size=4000 replay.mjs MODULE.wasm RECORDINGS
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const [modulePath, folder] = process.argv.slice(2)
const module = await WebAssembly.compile(readFileSync(modulePath))
if (WebAssembly.Module.imports(module).length > 0) throw new Error('the module imports something')
const core = (await WebAssembly.instantiate(module)).exports

function replay(bytes, chunk) {
  core.start(64 << 20)
  core.forget()
  let dropped = 0
  for (let from = 0; from < bytes.length; from += chunk) {
    const piece = bytes.subarray(from, from + chunk)
    // The memory may have moved, so the view is made each time.
    const at = core.room(piece.length)
    new Uint8Array(core.memory.buffer, at, piece.length).set(piece)
    dropped += core.push(piece.length)
  }
  dropped += core.end()
  const text = new TextDecoder().decode(new Uint8Array(core.memory.buffer, core.rows_at(), core.rows()))
  return { rows: text.split('\n').slice(0, -1), dropped }
}

function expected(bytes) {
  const rows = []
  let dropped = 0
  const lines = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes).split('\n')
  const tail = lines.pop()
  if (tail.trim() !== '') dropped += 1
  for (const line of lines.map((line) => line.trim()).filter((line) => line !== '')) {
    let frame
    try {
      frame = JSON.parse(line)
    } catch {
      dropped += 1
      continue
    }
    const { id, method, params, result, error } = frame ?? {}
    const object = (value) => typeof value === 'object' && value !== null
    const hasId = typeof id === 'string' || typeof id === 'number'
    const p = object(params) && !Array.isArray(params) ? params : {}
    if (hasId && typeof method === 'string') rows.push({ kind: 'request', id, method, params: p })
    else if (hasId && object(error)) {
      const { code, message, data } = error
      const known = { message: typeof message === 'string' ? message : 'JSON-RPC error' }
      rows.push({ kind: 'response', id, error: { ...known, ...(typeof code === 'number' && { code }), ...('data' in error && { data }) } })
    } else if (hasId) rows.push({ kind: 'response', id, result: result ?? null })
    else if (typeof method === 'string') rows.push({ kind: 'notification', method, params: p })
    else dropped += 1
  }
  return { rows: rows.map((row) => JSON.stringify(row)), dropped }
}

let [streams, frames, dropped] = [0, 0, 0]
for (const name of readdirSync(folder).filter((name) => name.endsWith('.jsonl'))) {
  const recording = readFileSync(join(folder, name), 'utf8').split('\n').slice(0, -1).map((row) => JSON.parse(row))
  for (const direction of ['c2s', 's2c']) {
    const pieces = recording.filter((row) => row.dir === direction).flatMap((row) => [
      row.frame_b64 === undefined ? Buffer.from(row.frame) : Buffer.from(row.frame_b64, 'base64'),
      Buffer.from(row.eol === false ? '' : '\n'),
    ])
    const bytes = Buffer.concat(pieces)
    const want = expected(bytes)
    const whole = replay(bytes, Math.max(bytes.length, 1))
    const ours = { rows: whole.rows.map((row) => JSON.stringify(JSON.parse(row))), dropped: whole.dropped }
    for (let i = 0; i < Math.max(want.rows.length, ours.rows.length); i++) {
      if (want.rows[i] !== ours.rows[i]) throw new Error(`${name} ${direction} row ${i}:\n${ours.rows[i]}\n${want.rows[i]}`)
    }
    if (want.dropped !== ours.dropped) throw new Error(`${name} ${direction}: ${ours.dropped} dropped, not ${want.dropped}`)
    if (JSON.stringify(replay(bytes, 1)) !== JSON.stringify(whole)) throw new Error(`${name} ${direction} depends on the cuts`)
    streams += 1
    frames += want.rows.length
    dropped += want.dropped
  }
}
if (frames < 1000 || dropped < 10) throw new Error(`only ${frames} frames and ${dropped} dropped lines`)
console.log(`wasm: ${streams} recorded streams, ${frames} frames and ${dropped} dropped lines as in JavaScript, whole and byte by byte`)

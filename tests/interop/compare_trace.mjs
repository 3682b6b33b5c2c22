// Compares what `dsh-wire inspect --json` says of a byte stream with what the reference transport dispatches for it.
// usage: node compare_trace.mjs INSPECT_OUTPUT REFERENCE_OUTPUT
// Prints each difference; the exit code is 1 if there is one.
import { readFileSync } from 'node:fs'

// Both sides hold numbers that JavaScript rounds, so both are compared as JavaScript writes them again. The reference
// says `code: null` and leaves the result out where we leave the code out and say `result: null`: neither counts.
function normal(line) {
  const row = JSON.parse(JSON.stringify(JSON.parse(line)))
  delete row.line
  if (row.error && row.error.code === null) delete row.error.code
  if (row.result === null) delete row.result
  const { kind, id, method, params, result, error, ...more } = row
  return JSON.stringify({ kind, id, method, params, result, error: error && inOrder(error), more })
}
function inOrder({ code, message, data, ...more }) {
  return { code, message, data, more }
}

// A notification `case` with a name stands between the lines, so that a difference can be told by name and one missing
// row does not shift all that follow.
function cases(file) {
  const found = new Map([['start', []]])
  let rows = found.get('start')
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    if (line === '') continue
    let row
    try {
      row = JSON.parse(line)
    } catch (error) {
      rows.push(`no JSON: ${error.message}: ${line}`)
      continue
    }
    if (row.kind === 'dropped' || row.kind === 'summary') continue
    if (row.kind === 'notification' && row.method === 'case') found.set(row.params.name, rows = [])
    else rows.push(normal(line))
  }
  return found
}

function short(text = 'nothing') {
  return text.length > 300 ? `${text.slice(0, 300)}… (${text.length} characters)` : text
}
const [ours, reference] = [cases(process.argv[2]), cases(process.argv[3])]
let differences = 0
for (const name of new Set([...ours.keys(), ...reference.keys()])) {
  const [a, b] = [ours.get(name) ?? [], reference.get(name) ?? []]
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    if (a[i] === b[i]) continue
    differences += 1
    console.log(`${name}\n  inspect:   ${short(a[i])}\n  reference: ${short(b[i])}`)
  }
  if (ours.has(name) && reference.has(name)) continue
  differences += 1
  console.log(`${name}\n  the case itself is missing in ${ours.has(name) ? 'the reference' : 'inspect'}`)
}
process.exitCode = differences === 0 ? 0 : 1

// Prints requirement -> tests; fails when a requirement has no test or a test names an unknown one.
// `--allow-open` lists what has no test yet without failing for it.
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { root } from './install.mjs'

const allowOpen = process.argv.includes('--allow-open')
const number = /[A-Z]+-[A-Z]\d+/
const lineOf = new RegExp(`^- (${number.source}): (.+)$`)

function filesIn(directory, accept) {
  return readdirSync(join(root, directory), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && accept(entry.name))
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .filter((path) => !path.includes('node_modules'))
}

const requirements = new Map()
for (const path of filesIn('docs/requirements', (name) => name.endsWith('.md'))) {
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    const [, id, text] = lineOf.exec(line) ?? []
    if (!id) continue
    if (requirements.has(id)) throw new Error(`${relative(root, path)}: ${id} is stated twice`)
    requirements.set(id, { text, tests: [], cannot: text.includes('(cannot be met here:') })
  }
}

const unknown = []
const isTest = (name) => name.endsWith('.test.ts') || name.endsWith('.suite.ts')
for (const path of [...filesIn('src', isTest), ...filesIn('test', isTest)]) {
  readFileSync(path, 'utf8')
    .split('\n')
    .forEach((line, index) => {
      for (const [, list] of line.matchAll(/\[((?:[A-Z]+-[A-Z]\d+(?:, ?)?)+)\]/g)) {
        for (const id of list.split(/, ?/)) {
          const where = `${relative(root, path)}:${index + 1}`
          const requirement = requirements.get(id)
          if (requirement) requirement.tests.push(where)
          else unknown.push(`${where} names ${id}, which no requirement states`)
        }
      }
    })
}

const open = []
for (const [id, { text, tests, cannot }] of requirements) {
  console.log(`${id.padEnd(10)} ${String(tests.length).padStart(3)} tests  ${text}`)
  for (const test of tests) console.log(`             ${test}`)
  if (tests.length === 0 && !cannot) open.push(id)
}
console.log(
  `\n${requirements.size} requirements, ${requirements.size - open.length} with tests or a stated reason, ${open.length} open`,
)
if (open.length > 0) console.log(`open: ${open.join(', ')}`)
for (const problem of unknown) console.log(problem)
process.exitCode = unknown.length > 0 || (open.length > 0 && !allowOpen) ? 1 : 0

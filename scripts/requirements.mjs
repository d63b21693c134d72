// Prints requirement -> tests; fails when a requirement has no test or a test names an unknown one.
// A line that ends in `(open)` belongs to a feature that is being built: it may lack a test, and loses the mark with its first one.
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { root } from './install.mjs'

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
    requirements.set(id, {
      text,
      tests: [],
      cannot: text.includes('(cannot be met here:'),
      isOpen: text.endsWith('(open)'),
    })
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
const problems = [...unknown]
for (const [id, { text, tests, cannot, isOpen }] of requirements) {
  console.log(`${id.padEnd(10)} ${String(tests.length).padStart(3)} tests  ${text}`)
  for (const test of tests) console.log(`             ${test}`)
  if (isOpen && tests.length > 0) problems.push(`${id} is marked (open) but has a test`)
  if (tests.length > 0 || cannot) continue
  open.push(id)
  if (!isOpen) problems.push(`${id} has no test`)
}
console.log(
  `\n${requirements.size} requirements, ${requirements.size - open.length} with tests or a stated reason, ${open.length} open`,
)
if (open.length > 0) console.log(`open: ${open.join(', ')}`)
for (const problem of problems) console.log(problem)
process.exitCode = problems.length > 0 ? 1 : 0

// Writes docs/reference/cli.md from the declarations of the commands; `--check` fails when it is stale.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ensureBuilt } from './build.mjs'
import { root } from './install.mjs'

ensureBuilt()
const load = (path) => import(pathToFileURL(join(root, 'dist', path)).href)
const { commands } = await load('cli/commands.js')
const { markdownReference } = await load('cli/options/index.js')

const page = [
  '# Commands and options',
  '',
  'Made from the declarations in the sources by `npm run reference`; do not edit.',
  '',
  'A flag wins over the environment, the environment over the `--config` file, the file over the default.',
  'Every command exits with 0 when done, 1 when it failed and 2 when it was called wrongly; results go to standard',
  'output, everything else to standard error.',
  '',
  ...commands.map((command) => markdownReference(command)),
].join('\n')

const file = join(root, 'docs', 'reference', 'cli.md')
if (process.argv.includes('--check')) {
  let present = ''
  try {
    present = readFileSync(file, 'utf8')
  } catch {
    // Absent is stale as well.
  }
  if (present !== page) {
    console.error('docs/reference/cli.md is stale: run npm run reference')
    process.exit(1)
  }
} else writeFileSync(file, page)

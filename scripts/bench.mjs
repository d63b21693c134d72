// `npm run bench`: measures Sallyport beside its peers. See bench/README.md.
import { runCompiled } from '../bench/compile.mjs'
import { ensureInstalled, requireNode } from './install.mjs'

const programs = {
  api: 'api/main.js',
  tunnel: 'tunnel/pairs.js',
  credentials: 'credentials/main.js',
  proxy: 'proxy/main.js',
  issuer: 'issuer/main.js',
  discovery: 'discovery/main.js',
  guard: 'guard/main.js',
  addon: 'addon/main.js',
  inputs: 'inputs/main.js',
}

requireNode()
ensureInstalled()
const [first, ...rest] = process.argv.slice(2)
if (first in programs) runCompiled(programs[first], rest)
else {
  const args = process.argv.slice(2)
  // What chooses parts or names a file is meant for the API's bench, as it always was.
  const isWhole = !args.some((arg) => /^--(?:only|output|help)\b/.test(arg))
  runCompiled(programs.api, args)
  let failed = process.exitCode
  if (isWhole) {
    const { api: _, ...others } = programs
    for (const program of Object.values(others)) {
      runCompiled(program, args)
      failed ||= process.exitCode
    }
  }
  process.exitCode = failed
}

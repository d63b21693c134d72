// Runs plugins as an application would: node run-plugin.mjs DIST RESULT RULES EXEC...
// DIST holds the built library, RULES is JSON for the host, each EXEC a JSON exec section with a plain env;
// the outcome of each, as JSON, goes to the file RESULT, because the terminal belongs to the plugins.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [dist, result, rules, ...sections] = process.argv.slice(2)
const library = (path) => import(pathToFileURL(join(dist, path)).href)
const { nodePluginHost, runPlugin } = await library('credentials/exec/index.js')
const { Secret } = await library('core/index.js')

const host = nodePluginHost(JSON.parse(rules))
const outcomes = sections.map(async (section) => {
  const { env = {}, ...exec } = JSON.parse(section)
  const variables = Object.entries(env).map(([name, value]) => ({ name, value: new Secret(value) }))
  return runPlugin({ exec: { ...exec, env: variables } }, host).then(
    ({ token }) => ({ token: token?.reveal() }),
    ({ code, message }) => ({ code, message }),
  )
})
writeFileSync(result, JSON.stringify(await Promise.all(outcomes)))

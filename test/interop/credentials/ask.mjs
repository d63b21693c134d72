// Asks a cluster as a user of the library would. As a program, for cases at a terminal: node ask.mjs DIST RESULT ORDER
// DIST holds the built library, ORDER is JSON; what became of each request goes to the file RESULT, because the
// terminal belongs to the plugins. Exits with 1 if one of them failed.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath, pathToFileURL } from 'node:url'

export async function ask(library, { kubeconfig, paths, home, kuberc, rules }) {
  const { loadContext, loadKuberc, readPluginPolicy } = library
  const { connectContext, createFetch, nodePluginHost } = library
  const outcomes = []
  try {
    const context = await loadContext({ explicitPath: kubeconfig, home })
    const policy = kuberc ? readPluginPolicy(await loadKuberc({ kuberc, home })) : undefined
    const plugins = nodePluginHost({ ...rules, ...(policy && { policy }) })
    const connections = await connectContext(context, { plugins, registry: 'none' })
    const fetch = createFetch(connections)
    for (const path of paths) {
      const outcome = fetch(path).then(async (response) => {
        await response.text()
        return { status: response.status }
      })
      outcomes.push(await outcome.catch(({ code, message }) => ({ code, message })))
    }
    connections.destroy()
  } catch ({ code, message }) {
    outcomes.push({ code, message })
  }
  return outcomes
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [dist, result, order] = process.argv.slice(2)
  const load = (room) => import(pathToFileURL(join(dist, room, 'index.js')).href)
  const library = { ...(await load('kubeconfig')), ...(await load('credentials')) }
  const outcomes = await ask(library, JSON.parse(order))
  if (result) writeFileSync(result, JSON.stringify(outcomes))
  process.exitCode = outcomes.every(({ status }) => status === 200) ? 0 : 1
}

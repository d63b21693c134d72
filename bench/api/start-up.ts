import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { get } from 'node:https'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../free-port.ts'
import { root } from '../root.ts'
import { startPeer } from './contestant.ts'
import { type Figure, figureOf } from './figure.ts'

const pollMs = 5
const patienceMs = 60_000

/** Whether the server says that it is ready; its certificate is not of interest here. */
function isReady(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const url = `https://127.0.0.1:${port}/readyz`
    const request = get(url, { rejectUnauthorized: false, agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode === 200)
    })
    request.on('error', () => resolve(false))
  })
}

/** Milliseconds from `npm start` to the first answer that says ready; the server is stopped again. */
async function timeNpmStart(dataDirectory: string): Promise<number> {
  const port = await freePort()
  const flags = ['--data-dir', dataDirectory, '--secure-port', String(port)]
  const started = performance.now()
  // A group of its own: npm starts a shell that starts ours, and all of them have to go.
  const npm = spawn('npm', ['start', '--silent', '--', ...flags], {
    cwd: root,
    stdio: 'ignore',
    detached: true,
  })
  const gone = once(npm, 'exit')
  try {
    while (!(await isReady(port))) {
      if (npm.exitCode !== null) throw new Error(`npm start ended with code ${npm.exitCode}`)
      if (performance.now() - started > patienceMs) throw new Error('npm start is not ready')
      await delay(pollMs)
    }
    return performance.now() - started
  } finally {
    if (npm.exitCode === null && npm.pid !== undefined) process.kill(-npm.pid, 'SIGTERM')
    await gone
  }
}

async function timePeerStart(directory: string): Promise<number> {
  const peer = await startPeer(directory)
  await peer.stop()
  return peer.readyMs ?? Number.NaN
}

/** Time from the command to ready: the very first start, and one that finds the state of another. */
export async function measureStart(
  directory: string,
  options: { readonly rounds: number; readonly withPeer: boolean },
): Promise<Figure[]> {
  await timeNpmStart(join(directory, 'warm')) // builds what is stale
  const first = { ours: [] as number[], peer: [] as number[] }
  const again = { ours: [] as number[], peer: [] as number[] }
  for (let round = 0; round < options.rounds; round++) {
    const ours = join(directory, `ours-${round}`)
    first.ours.push(await timeNpmStart(ours))
    again.ours.push(await timeNpmStart(ours))
    if (!options.withPeer) continue
    const peer = join(directory, `peer-${round}`)
    first.peer.push(await timePeerStart(peer))
    if (options.rounds > 1) again.peer.push(await timePeerStart(peer))
  }
  const about = { unit: 'ms', better: 'less', aim: { atMost: 1_500 } } as const
  return [
    figureOf({ ...about, name: 'npm start to ready, keys to be made' }, first),
    figureOf({ ...about, name: 'npm start to ready, again' }, again),
  ]
}

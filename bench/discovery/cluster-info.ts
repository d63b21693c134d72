import { readFile, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { mintDiscoveryJwt, parseBootstrapToken } from '../../src/bootstrap/index.ts'
import { parseKubeconfig, resolveContext } from '../../src/kubeconfig/index.ts'
import { runLoad } from '../api/load.ts'
import { type Figure, figureOf } from '../credentials/figures.ts'
import type { Order } from '../credentials/report.ts'
import { inTurn } from '../in-turn.ts'

const path = '/api/v1/namespaces/kube-public/configmaps/cluster-info'
const plain = 'ours, plain'
const anonymous = 'ours, anonymous'
const signed = 'ours, JWT and signature'
const theirs = 'kube-apiserver, plain'

/** A server and the processes that it consists of. */
export interface Measured {
  readonly kubeconfig: string
  readonly pids: readonly number[]
}

const metrics = [
  { of: 'perSecond', unit: 'per second', better: 'more' },
  { of: 'perCpuSecond', unit: 'per CPU second', better: 'more' },
  { of: 'cpuMicroseconds', unit: 'CPU each, us', better: 'less' },
  { of: 'p99Ms', unit: 'p99, ms', better: 'less' },
] as const

/** The same kubeconfig for another bearer, or for nobody. */
async function asBearer(
  { kubeconfig, pids }: Measured,
  token: string | undefined,
  file: string,
): Promise<Measured> {
  const config = JSON.parse(await readFile(kubeconfig, 'utf8')) as { users: { user: object }[] }
  const [user] = config.users
  if (user) user.user = token === undefined ? {} : { token }
  await writeFile(file, JSON.stringify(config), { mode: 0o600 })
  return { kubeconfig: file, pids }
}

/** Gives kube-apiserver the very document of ours. */
async function copyDocument(from: Measured, to: Measured): Promise<void> {
  const document = JSON.parse(await ask(from, 'GET', path)) as { data: object }
  const collection = path.slice(0, path.lastIndexOf('/'))
  const metadata = { name: 'cluster-info' }
  await ask(to, 'POST', collection, { metadata, data: document.data })
}

async function ask(
  server: Measured,
  method: string,
  where: string,
  body?: object,
): Promise<string> {
  const config = await parseKubeconfig(await readFile(server.kubeconfig, 'utf8'), server.kubeconfig)
  const { cluster, user } = resolveContext(config)
  const headers = {
    authorization: `Bearer ${user.token?.reveal() ?? ''}`,
    'content-type': 'application/json',
  }
  return new Promise((resolve, reject) => {
    const options = { method, headers, ca: cluster.certificateAuthorityData, agent: false }
    const sent = request(`${cluster.server}${where}`, options, (response) => {
      const { statusCode = 0 } = response
      text(response).then(
        (answer) =>
          statusCode < 300
            ? resolve(answer)
            : reject(new Error(`${method} ${where}: ${statusCode} ${answer}`)),
        reject,
      )
    })
    sent.on('error', reject)
    sent.end(body && JSON.stringify(body))
  })
}

/** Reading cluster-info: by request and answer signed with a token, with a bearer token, and without a credential. */
export async function measureClusterInfo(
  servers: { readonly ours: Measured; readonly peer?: Measured | undefined },
  about: { readonly token: string; readonly directory: string; readonly order: Order },
): Promise<Figure[]> {
  const { ours, peer } = servers
  const { seconds, rounds } = about.order
  const token = parseBootstrapToken(about.token)
  const file = (name: string): string => join(about.directory, `${name}.kubeconfig`)
  const times = ['--warmup', `${Math.min(1, seconds / 2)}`, '--seconds', `${seconds}`]
  const flags = ['--op', 'request', '--path', path, '--connections', '32', ...times]
  const stranger = await asBearer(ours, undefined, file('anonymous'))
  if (peer) await copyDocument(ours, peer)
  const measured = new Map([
    [plain, () => runLoad(ours, flags)],
    [anonymous, () => runLoad(stranger, flags)],
    [
      signed,
      // It is good for a minute, and a round takes less.
      async () =>
        runLoad(await asBearer(ours, mintDiscoveryJwt(token, Date.now()), file('jwt')), flags),
    ],
    ...(peer ? [[theirs, () => runLoad(peer, flags)] as const] : []),
  ])
  const results = await inTurn(measured, rounds)
  return metrics.map(({ of, unit, better }) => {
    const all = [...results].map(([who, each]) => [who, each.map((result) => result[of])])
    const aims = of === 'perCpuSecond' ? [{ of: signed, than: theirs, times: 1 }] : []
    return figureOf({ name: 'cluster-info', unit, better, aims, rounds: Object.fromEntries(all) })
  })
}

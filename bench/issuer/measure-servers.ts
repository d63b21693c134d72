import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type LoadResult, runLoad } from '../api/load.ts'
import { type Aim, type Figure, figureOf } from '../credentials/figures.ts'
import type { Order } from '../credentials/report.ts'
import { inTurn } from '../in-turn.ts'
import type { Measured } from './servers.ts'
import { issueToken, readDocument } from './speak.ts'

const ours = 'ours'
const connections = ['--connections', '32']

const metrics = [
  { of: 'perSecond', unit: 'per second', better: 'more' },
  { of: 'perCpuSecond', unit: 'per CPU second', better: 'more' },
  { of: 'p99Ms', unit: 'p99, ms', better: 'less' },
] as const

interface Scenario {
  readonly name: string
  readonly aims: readonly Aim[]
  readonly flagsOf: (name: string) => readonly string[]
}

async function measure(
  { name, aims, flagsOf }: Scenario,
  servers: ReadonlyMap<string, Measured>,
  { rounds, seconds }: Order,
): Promise<Figure[]> {
  const measured = new Map(
    [...servers].map(([who, server]) => {
      const times = ['--warmup', `${Math.min(1, seconds / 2)}`, '--seconds', `${seconds}`]
      const flags = ['--op', 'request', ...connections, ...times, ...flagsOf(who)]
      return [who, () => runLoad(server, flags)]
    }),
  )
  const results: ReadonlyMap<string, readonly LoadResult[]> = await inTurn(measured, rounds)
  return metrics.map(({ of, unit, better }) => {
    const all = [...results].map(([who, each]) => [who, each.map((result) => result[of])])
    const wanted = of === 'perCpuSecond' ? aims : []
    return figureOf({ name, unit, better, aims: wanted, rounds: Object.fromEntries(all) })
  })
}

/** TokenReview of one good token: found in a cache, and verified anew because each asks for other audiences. */
export async function measureReviews(
  servers: ReadonlyMap<string, Measured>,
  directory: string,
  order: Order,
): Promise<Figure[]> {
  const path = '/apis/authentication.k8s.io/v1/tokenreviews'
  const bodies = new Map<string, string>()
  for (const [name, { kubeconfig }] of servers) {
    const { token, issuer } = await issueToken(kubeconfig)
    for (const [kind, audiences] of [
      ['cached', [issuer]],
      ['new', [issuer, 'n-{n}']],
    ] as const) {
      const file = join(directory, 'bodies', `${name}-${kind}.json`)
      const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview' }
      await mkdir(join(file, '..'), { recursive: true })
      await writeFile(file, JSON.stringify({ ...review, spec: { token, audiences } }))
      bodies.set(`${name} ${kind}`, file)
    }
  }
  const aims = [{ of: ours, than: 'kube-apiserver', times: 1 }]
  const figures: Figure[] = []
  for (const kind of ['cached', 'new']) {
    const flagsOf = (name: string) => [
      '--path',
      path,
      '--body',
      bodies.get(`${name} ${kind}`) ?? '',
    ]
    const name = `TokenReview, ${kind === 'new' ? 'not cached' : kind}`
    figures.push(...(await measure({ name, aims, flagsOf }, servers, order)))
  }
  return figures
}

/** The two documents, over TLS with keep-alive. */
export async function measureDocuments(
  servers: ReadonlyMap<string, Measured>,
  order: Order,
): Promise<Figure[]> {
  const aims = ['ours', 'issuer serve'].map((of) => ({ of, than: 'nginx', times: 1 }))
  const figures: Figure[] = []
  for (const [name, path] of documents) {
    figures.push(
      ...(await measure({ name, aims, flagsOf: () => ['--path', path] }, servers, order)),
    )
  }
  return figures
}

const documents = [
  ['discovery document', '/.well-known/openid-configuration'],
  ['key set', '/openid/v1/jwks'],
] as const

/** The documents of a server as they are served, by path. */
export async function documentsOf({ kubeconfig }: Measured): Promise<Map<string, Buffer>> {
  const found = new Map<string, Buffer>()
  for (const [, path] of documents) found.set(path, await readDocument(kubeconfig, path))
  return found
}

import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { peerMissing } from '../api/contestant.ts'
import type { Figure } from '../credentials/figures.ts'
import { type Order, readOrder, report } from '../credentials/report.ts'
import { startSallyport } from '../sallyport.ts'
import { documentsOf, measureDocuments, measureReviews } from './measure-servers.ts'
import { measureTokens } from './measure-tokens.ts'
import { type Measured, startDocumentServer, startNginx, startPeerWithOurKey } from './servers.ts'

/** Tokens beside jose and go-oidc, reviews beside kube-apiserver, documents beside nginx. */

async function measureServers(directory: string, order: Order): Promise<Figure[]> {
  const home = join(directory, 'ours')
  await mkdir(home)
  const sallyport = await startSallyport(home)
  const ours: Measured = { ...sallyport, pids: [sallyport.pid] }
  const started: Measured[] = [ours]
  try {
    const reviewers = new Map([['ours', ours]])
    const missing = peerMissing()
    if (missing === undefined) {
      const peer = await startPeerWithOurKey(join(directory, 'peer'), sallyport)
      started.push(peer)
      reviewers.set('kube-apiserver', peer)
    } else console.error(missing)
    const listener = await startDocumentServer(sallyport)
    started.push(listener)
    const nginx = await startNginx(join(directory, 'nginx'), sallyport, await documentsOf(ours))
    if (nginx) started.push(nginx)
    const servers = new Map([
      ...reviewers,
      ['issuer serve', listener],
      ...(nginx ? [['nginx', nginx] as const] : []),
    ])
    return [
      ...(await measureReviews(reviewers, directory, order)),
      ...(await measureDocuments(servers, order)),
    ]
  } finally {
    for (const server of started.reverse()) await server.stop()
  }
}

const order = readOrder('issuer')
const directory = await mkdtemp(join(tmpdir(), 'bench-issuer-'))
try {
  const figures = [...(await measureTokens(order)), ...(await measureServers(directory, order))]
  await report(figures, order)
} finally {
  await rm(directory, { recursive: true, force: true })
}

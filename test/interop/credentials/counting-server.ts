import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  type Seen,
  seenIn,
  TransportLab,
} from '../../../src/credentials/transport/transport-lab.suite.ts'

/** An API server that is just real enough for `kubectl get pods`, and keeps who asked it. */
export interface CountingServer {
  readonly lab: TransportLab
  readonly url: string
  /** The same without TLS. */
  readonly plainUrl: string
  /** Forgets what was seen and says from now on which `Authorization` is refused with 401. */
  begin(refuses: (authorization: string) => boolean): void
  readonly seen: readonly Pick<Seen, 'authorization' | 'commonName'>[]
  stop(): Promise<void>
}

const documents: Readonly<Record<string, object>> = {
  '/api': { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] },
  '/apis': { kind: 'APIGroupList', apiVersion: 'v1', groups: [] },
  '/api/v1': {
    kind: 'APIResourceList',
    groupVersion: 'v1',
    resources: [
      { name: 'pods', singularName: 'pod', namespaced: true, kind: 'Pod', verbs: ['get', 'list'] },
    ],
  },
  '/api/v1/namespaces/default/pods': {
    kind: 'PodList',
    apiVersion: 'v1',
    metadata: { resourceVersion: '1' },
    items: [],
  },
}
const refused = {
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  reason: 'Unauthorized',
  code: 401,
}

/** Starts it, with TLS and without. */
export async function startCountingServer(): Promise<CountingServer> {
  const lab = await TransportLab.open()
  let refuses: (authorization: string) => boolean = () => false
  let seen: Pick<Seen, 'authorization' | 'commonName'>[] = []
  const answer = (url: string | undefined, authorization: string | undefined) => {
    if (refuses(authorization ?? '')) return { status: 401, document: refused }
    const document = documents[url?.split('?')[0] ?? '']
    return document ? { status: 200, document } : { status: 404, document: {} }
  }
  const tls = await lab.serve((request, response) => {
    const { authorization, commonName } = seenIn(request)
    seen.push({ authorization, commonName })
    const { status, document } = answer(request.url, authorization)
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(document))
  })
  const plain = createServer((request, response) => {
    const { authorization } = request.headers
    seen.push({ authorization, commonName: undefined })
    const { status, document } = answer(request.url, authorization)
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(document))
  })
  plain.listen(0, '127.0.0.1')
  await once(plain, 'listening')
  return {
    lab,
    url: tls.url,
    plainUrl: `http://127.0.0.1:${(plain.address() as AddressInfo).port}`,
    begin: (rule) => {
      refuses = rule
      seen = []
    },
    get seen() {
      return seen
    },
    stop: async () => {
      plain.close()
      plain.closeAllConnections()
      await lab.clear()
    },
  }
}

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  createInformer,
  createKubeClient,
  RemoteClusterView,
  transportFromKubeconfig,
} from '../../../src/client/index.ts'
import { Secret, silentLogger } from '../../../src/core/index.ts'
import {
  Connections,
  connectContext,
  contextConnectionOptions,
  createFetch,
  nodePluginHost,
  SourceRegistry,
} from '../../../src/credentials/index.ts'
import {
  type LabServer,
  TransportLab,
  whoAmI,
} from '../../../src/credentials/transport/transport-lab.suite.ts'
import type { ResolvedContext } from '../../../src/kubeconfig/index.ts'
import { standIns } from './contest-case.ts'
import { WatchedObjects } from './watched-objects.ts'

let lab: TransportLab
let directory: string
beforeEach(async () => {
  lab = await TransportLab.open()
  directory = await mkdtemp(join(tmpdir(), 'sallyport-scale-'))
})
afterEach(async () => {
  await lab.clear()
  await rm(directory, { recursive: true, force: true })
})

const record = (): string => join(directory, 'record')
const runs = async (): Promise<number> =>
  (await readFile(record(), 'utf8').catch(() => '')).split('\n').length - 1

function contextOf(server: LabServer, command: string, args: string[] = []): ResolvedContext {
  return {
    contextName: 'it',
    clusterName: 'it',
    userName: 'it',
    namespace: 'default',
    cluster: { server: server.url, certificateAuthorityData: lab.caPem },
    user: {
      exec: {
        apiVersion: 'client.authentication.k8s.io/v1',
        command,
        args,
        env: [{ name: 'RECORD', value: new Secret(record()) }],
        interactiveMode: 'Never',
      },
    },
  }
}

/** Clients that share what they fetch among themselves only. */
const host = () => ({ plugins: nodePluginHost(), registry: new SourceRegistry() })

test('100 requests at once of ten new clients run the plugin once [CRED-I4, CRED-R18]', async () => {
  const server = await lab.serve(whoAmI)
  const context = contextOf(server, join(standIns, 'presigned-token'))
  const shared = host()
  const clients = await Promise.all(
    Array.from({ length: 10 }, () => connectContext(context, shared)),
  )
  for (const client of clients) lab.own(client)
  const answers = await Promise.all(
    clients.flatMap((client) =>
      Array.from({ length: 10 }, async () => {
        const response = await createFetch(client)('/api')
        return ((await response.json()) as { authorization: string }).authorization
      }),
    ),
  )
  expect(answers).toHaveLength(100)
  expect(new Set(answers).size).toBe(1)
  expect(answers[0]).toMatch(/^Bearer k8s-aws-v1\./)
  expect(await runs()).toBe(1)
})

test.each([
  ['2', 1],
  ['1.1', 50],
] as const)(
  '10,000 requests over HTTP/%s, 50 at a time, use one set of connections and one run [CRED-I4, CRED-T1]',
  async (http, most) => {
    const server = await lab.serve(whoAmI)
    const context = contextOf(server, join(standIns, 'presigned-token'))
    const options = await contextConnectionOptions(context, host())
    const connections = new Connections({ ...options, http })
    lab.own(connections)
    const fetch = createFetch(connections)
    let left = 10_000
    const lane = async (): Promise<void> => {
      while (left-- > 0) expect(await (await fetch('/api')).text()).toContain('Bearer')
    }
    await Promise.all(Array.from({ length: 50 }, lane))
    expect(server.connections()).toBeLessThanOrEqual(most)
    expect(await runs()).toBe(1)
  },
)

describe.each([
  ['HTTP/2', false],
  ['HTTP/1.1', true],
] as const)('a certificate is replaced under 100 open watches over %s', (_name, http1Only) => {
  const kind = {
    group: '',
    version: 'v1',
    kind: 'ConfigMap',
    resource: 'configmaps',
    namespaced: true,
  }

  /** A plugin that hands out the certificate of user1 at its first run and of user2 later. */
  async function certificates(): Promise<string[]> {
    for (const name of ['user1', 'user2']) {
      const { certPem, keyPem } = await lab.certificate(name)
      const status = { clientCertificateData: certPem, clientKeyData: keyPem.reveal() }
      await writeFile(join(directory, name), JSON.stringify(status), { mode: 0o600 })
    }
    const choose = '[ $(wc -l <"$RECORD") -le 1 ] && user=user1 || user=user2'
    return ['-c', `. ${standIns}record.sh; ${choose}; answer "$(cat ${directory}/$user)"`]
  }

  test('all go on as the new user, no change is lost or told twice, no session is resumed [CRED-I5, CRED-S11]', async () => {
    const objects = new WatchedObjects()
    const server = await lab.serve((request, response) => objects.answer(request, response), {
      http1Only,
    })
    const transport = await transportFromKubeconfig(
      contextOf(server, 'sh', await certificates()),
      host(),
    )
    lab.own(transport)
    const client = createKubeClient({ transport })
    const view = new RemoteClusterView(client)
    const stop = new AbortController()
    const told = Array.from({ length: 100 }, (): string[] => [])
    objects.add('before')
    const backoff = { initialMs: 10, maxMs: 100 }
    const informers = told.map((names) => {
      const { signal } = stop
      const informer = createInformer({ view, kind, log: silentLogger, backoff, signal })
      informer.onChange(({ name }) => void names.push(name))
      return informer
    })
    const patience = { timeout: 30_000, interval: 20 }
    const watchedBy = (): (string | undefined)[] => [...objects.open].map((one) => one.commonName)
    await vi.waitFor(() => expect(watchedBy()).toEqual(Array(100).fill('user1')), patience)

    objects.revoked = 'user1'
    objects.add('while one user is revoked')
    await client.list(kind, { namespace: 'default' }, stop.signal)
    objects.add('while watches are being opened again')
    await vi.waitFor(() => expect(watchedBy()).toEqual(Array(100).fill('user2')), patience)
    objects.add('after')
    const all = [
      'before',
      'while one user is revoked',
      'while watches are being opened again',
      'after',
    ]
    await vi.waitFor(() => expect(told).toEqual(Array(100).fill(all)), patience)

    expect(objects.seen.filter(({ sessionReused }) => sessionReused)).toEqual([])
    expect(await runs()).toBe(2)
    stop.abort()
    await Promise.all(informers.map(({ ended }) => ended))
  })
})

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as clientNode from '@kubernetes/client-node'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { nodePluginHost } from '../exec/index.ts'
import { execSource } from '../sources/index.ts'
import type { ConnectionsOptions } from '../transport/index.ts'
import {
  FakeSource,
  type LabServer,
  seenIn,
  TransportLab,
  tokenCredential,
} from '../transport/transport-lab.suite.ts'
import { clientNodeAuthenticator, connectKubeConfig } from './client-node.ts'

let lab: TransportLab
let directory: string
beforeAll(async () => {
  lab = await TransportLab.open()
  directory = await mkdtemp(join(tmpdir(), 'client-node-'))
})
afterEach(() => lab.clear())
afterAll(() => rm(directory, { recursive: true, force: true }))

/** A KubeConfig as its users have it, with nothing in it that would work by itself. */
function kubeConfig(server: LabServer): clientNode.KubeConfig {
  const config = new clientNode.KubeConfig()
  config.loadFromClusterAndUser(
    { name: 'lab', server: server.url, skipTLSVerify: false },
    { name: 'nobody' },
  )
  return config
}

function connected(server: LabServer, options: Partial<ConnectionsOptions>): clientNode.KubeConfig {
  return connectKubeConfig(clientNode, kubeConfig(server), lab.connect(server, options))
}

const pod = (name: string) => ({ metadata: { name, resourceVersion: '1' } })

/** Lists and watches pods for whoever has a token that `accepts`; tells by a pod's name who asked. */
const podServer = (accepts: (token: string) => boolean) =>
  lab.serve((request: IncomingMessage, response: ServerResponse) => {
    const { authorization = '', commonName } = seenIn(request)
    const token = authorization.replace('Bearer ', '')
    response.setHeader('content-type', 'application/json')
    if (!accepts(token)) {
      response.statusCode = 401
      response.end('{"kind":"Status","code":401}')
      return
    }
    const name = `${token}-${commonName ?? 'nobody'}`
    if (request.url?.includes('watch=true'))
      response.write(`${JSON.stringify({ type: 'ADDED', object: pod(name) })}\n`)
    else response.end(JSON.stringify({ kind: 'PodList', metadata: {}, items: [pod(name)] }))
  })

async function listed(config: clientNode.KubeConfig): Promise<string | undefined> {
  const api = config.makeApiClient(clientNode.CoreV1Api)
  const { items } = await api.listNamespacedPod({ namespace: 'default' })
  return items[0]?.metadata?.name
}

/** The name of the first pod of a watch, or the status that refused it. */
async function watched(config: clientNode.KubeConfig): Promise<string> {
  let stop = () => {}
  const first = new Promise<string>((resolve) => {
    const seen = (_phase: string, { metadata }: { metadata: { name: string } }) =>
      resolve(metadata.name)
    const done = (error?: { statusCode?: number }) => resolve(String(error?.statusCode))
    new clientNode.Watch(config).watch('/api/v1/pods', {}, seen, done).then(
      (controller) => {
        stop = () => controller.abort()
      },
      (error: Error) => resolve(error.message),
    )
  })
  const result = await first
  stop()
  return result
}

describe('a KubeConfig of @kubernetes/client-node on our connections [CRED-T6]', () => {
  test('lists by one connection and replays after a 401', async () => {
    const server = await podServer((token) => token === 't2')
    const credentials = new FakeSource(tokenCredential('t1'), tokenCredential('t2'))
    const config = connected(server, { credentials })
    const names = [await listed(config), await listed(config), await listed(config)]
    expect(names).toEqual(Array(3).fill('t2-nobody'))
    expect(credentials.refusals).toHaveLength(1)
    expect(server.connections()).toBe(1)
  })

  test('watches, and after a refused watch the next one has the new credential', async () => {
    const server = await podServer((token) => token === 't2')
    const credentials = new FakeSource(tokenCredential('t1'), tokenCredential('t2'))
    const config = connected(server, { credentials })
    expect(await watched(config)).toBe('401')
    expect(await watched(config)).toBe('t2-nobody')
  })

  test('takes a rotated certificate in lists and watches [CRED-R21]', async () => {
    const server = await podServer(() => true)
    const credentials = new FakeSource({ clientCertificate: await lab.certificate('user1') })
    const config = connected(server, { credentials })
    expect([await listed(config), await watched(config)]).toEqual(['-user1', '-user1'])
    credentials.rotate({ clientCertificate: await lab.certificate('user2') })
    expect([await listed(config), await watched(config)]).toEqual(['-user2', '-user2'])
  })

  test('runs a plugin once for twenty cold requests, and once more when its token is refused [CRED-R18]', async () => {
    const count = join(directory, 'count')
    const script = join(directory, 'plugin.mjs')
    await writeFile(count, '0')
    await writeFile(
      script,
      `import { readFileSync, writeFileSync } from 'node:fs'
       const run = Number(readFileSync(${JSON.stringify(count)}, 'utf8')) + 1
       writeFileSync(${JSON.stringify(count)}, String(run))
       const apiVersion = 'client.authentication.k8s.io/v1'
       const status = { token: 'run' + run }
       console.log(JSON.stringify({ apiVersion, kind: 'ExecCredential', status }))`,
    )
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: process.execPath,
      args: [script],
      interactiveMode: 'Never',
    }
    let valid = 'run1'
    const server = await podServer((token) => token === valid)
    const plugins = nodePluginHost()
    const credentials = execSource(exec, { server: server.url }, { plugins, registry: 'none' })
    lab.own({ destroy: () => credentials.dispose() })
    const config = connected(server, { credentials })
    const cold = await Promise.all(Array.from({ length: 20 }, () => listed(config)))
    expect(new Set(cold)).toEqual(new Set(['run1-nobody']))
    expect(await readFile(count, 'utf8')).toBe('1')
    valid = 'run2'
    expect(await listed(config)).toBe('run2-nobody')
    expect(await watched(config)).toBe('run2-nobody')
    expect(await readFile(count, 'utf8')).toBe('2')
  })

  test('is refused for connections to another cluster', async () => {
    const [one, other] = [await podServer(() => true), await podServer(() => true)]
    const attempt = () => connectKubeConfig(clientNode, kubeConfig(one), lab.connect(other))
    expect(attempt).toThrow(/is not https:/)
  })
})

test('an authenticator hands the credential to a KubeConfig that stays as it is [CRED-T6]', async () => {
  const server = await podServer((token) => token === 't1')
  const clientCertificate = await lab.certificate('user1')
  const credentials = new FakeSource({ ...tokenCredential('t1'), clientCertificate })
  const config = new clientNode.KubeConfig()
  const caData = Buffer.from(lab.caPem).toString('base64')
  config.loadFromClusterAndUser(
    { name: 'lab', server: server.url, caData, skipTLSVerify: false },
    { name: 'me' },
  )
  config.addAuthenticator(clientNodeAuthenticator(lab.connect(server, { credentials })))
  expect(await listed(config)).toBe('t1-user1')
})

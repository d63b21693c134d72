import { once } from 'node:events'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { addonFeature } from '../../src/apiserver/features/addon.ts'
import { tunnelFeature } from '../../src/apiserver/features/tunnel.ts'
import { workloadFeature } from '../../src/apiserver/features/workload.ts'
import { apiVersionOf, machineIdentity, wellKnownKinds } from '../../src/core/index.ts'
import { labAuthority } from '../../src/http/tls-lab.suite.ts'
import { issueKeyAndCertificate, privateKeyPem } from '../../src/pki/index.ts'
import { outwardAddress, ServiceProxyLab } from '../support/service-proxy-lab.ts'
import { httpTarget } from '../support/tcp-target.ts'

const undo: (() => unknown)[] = []
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step()
})

async function open(...args: Parameters<typeof ServiceProxyLab.open>): Promise<ServiceProxyLab> {
  const lab = await ServiceProxyLab.open(...args)
  undo.push(() => lab.close())
  return lab
}

describe.skipIf(outwardAddress === undefined)('backends of the service proxy', () => {
  test('are dialled through the tunnel with --egress tunnel, and in no other way [TUN-I1]', async () => {
    const flags = [
      '--tunnel',
      '--tunnel-agent-port',
      '0',
      '--egress',
      'tunnel',
      '--tunnel-local-agent',
    ]
    const lab = await open(flags, [tunnelFeature, addonFeature])
    await lab.server.logged('agent connected')
    const backend = await lab.backend((request, response) => response.end(`saw ${request.url}`))
    const path = await lab.addon('web', backend)
    const admin = await lab.server.admin()
    for (const name of ['one', 'two'])
      expect((await admin.get(`${path}/${name}`)).text).toBe(`saw /${name}`)
    const byPod = await admin.get('/api/v1/namespaces/default/pods/web/proxy/three')
    expect(byPod.text).toBe('saw /three')
    const { text } = await admin.get('/metrics')
    expect(text).toMatch(/^konnectivity_network_proxy_server_dial_duration_seconds_count [1-9]/m)
  })

  test('a connection is used again, and each request has its own headers [ADDON-T35]', async () => {
    const lab = await open()
    let connections = 0
    const backend = await lab.backend((request, response) =>
      response.end(String(request.headers['x-mine'])),
    )
    const path = await lab.addon('web', backend)
    const admin = await lab.server.admin()
    const watch = (): void => {
      connections = backend.open.size
    }
    for (const mine of ['a', 'b', 'c']) {
      expect((await admin.get(`${path}/`, { 'x-mine': mine })).text).toBe(mine)
      watch()
    }
    expect((await admin.get(`${path}/`)).text).toBe('undefined')
    expect(connections).toBe(1)
  })

  test('an add-on that closes its connections is asked again [ADDON-T35]', async () => {
    const lab = await open()
    const backend = await lab.backend((_request, response) => response.end('ok'))
    const path = await lab.addon('web', backend)
    const admin = await lab.server.admin()
    expect((await admin.get(`${path}/`)).text).toBe('ok')
    for (const socket of backend.open) socket.destroy()
    expect((await admin.get(`${path}/`)).text).toBe('ok')
  })

  describe('by https [ADDON-R44]', () => {
    async function secure(lab: ServiceProxyLab, names: readonly string[]) {
      const ca = await labAuthority('addon-ca')
      const { certPem, key } = await issueKeyAndCertificate({
        ca,
        subject: { commonName: 'addon' },
        usages: ['server auth'],
        sans: names,
        now: Date.now(),
        lifetimeMs: 3_600_000,
      })
      const server = createHttpsServer(
        { cert: certPem, key: privateKeyPem(key).reveal() },
        (_request, response) => response.end('secure'),
      )
      server.listen(0, outwardAddress)
      await once(server, 'listening')
      undo.push(
        () => server.closeAllConnections(),
        () => server.close(),
      )
      const { port } = server.address() as AddressInfo
      const addon = (name: string, annotations: Record<string, string>) =>
        lab.addon(name, { port }, { annotations, port: 443 })
      return { ca, addon }
    }
    const at = (name: string): string => `/api/v1/namespaces/default/services/https:${name}:/proxy/`

    test('are verified where the Service names a CA, by name', async () => {
      const lab = await open()
      const admin = await lab.server.admin()
      const { ca, addon } = await secure(lab, ['good.default.svc', 'other.name'])
      await addon('good', { 'sallyport.dev/backend-ca': ca.bundlePem })
      await addon('renamed', {
        'sallyport.dev/backend-ca': ca.bundlePem,
        'sallyport.dev/backend-server-name': 'other.name',
      })
      await addon('misnamed', { 'sallyport.dev/backend-ca': ca.bundlePem })
      await addon('foreign', { 'sallyport.dev/backend-ca': (await labAuthority('x')).bundlePem })
      await addon('broken', { 'sallyport.dev/backend-ca': 'no certificate' })
      for (const name of ['good', 'renamed'])
        expect((await admin.get(at(name))).text).toBe('secure')
      for (const name of ['misnamed', 'foreign', 'broken'])
        expect([name, (await admin.get(at(name))).status]).toEqual([name, 503])
    })

    test('that speak plain HTTP are said to, in words', async () => {
      const lab = await open()
      await lab.addon('plain', await lab.backend((_request, response) => response.end()))
      const { status, object } = await (await lab.server.admin()).get(at('plain'))
      expect([status, object['message']]).toEqual([
        503,
        'error trying to reach service: no TLS (wrong version number); is it https?',
      ])
    })

    test('are not verified where it names none, as in Kubernetes', async () => {
      const lab = await open()
      const { addon } = await secure(lab, ['whoever'])
      await addon('plain', {})
      expect((await (await lab.server.admin()).get(at('plain'))).text).toBe('secure')
    })
  })
})

test('a process on loopback is reached where `workload run` has put it, and only there [ADDON-P2]', async () => {
  const lab = await open([], [addonFeature, workloadFeature])
  const backend = await httpTarget((_request, response) => response.end('local'))
  const hidden = await httpTarget((_request, response) => response.end('hidden'))
  undo.push(
    () => backend.close(),
    () => hidden.close(),
  )
  const groups = [machineIdentity.group, machineIdentity.loopbackGroup, 'system:masters']
  const machine = lab.server.as(await lab.server.issue(`${machineIdentity.userPrefix}here`, groups))
  const pods = '/api/v1/namespaces/default/pods'
  const made = await machine.post(pods, {
    apiVersion: apiVersionOf(wellKnownKinds.pod),
    kind: 'Pod',
    metadata: { name: 'local', labels: { app: 'local', 'sallyport.dev/workload': 'here' } },
    spec: {
      nodeName: 'here',
      containers: [{ name: 'c', image: 'i', ports: [{ containerPort: backend.port }] }],
    },
  })
  expect(made.status).toBe(201)
  const status = {
    phase: 'Running',
    podIP: '127.0.0.1',
    podIPs: [{ ip: '127.0.0.1' }],
    conditions: [{ type: 'Ready', status: 'True' }],
  }
  const put = await machine.put(`${pods}/local/status`, { ...made.object, status })
  expect([put.status, put.text.slice(0, 200)]).toEqual([200, expect.any(String)])
  const admin = await lab.server.admin()
  expect((await admin.get(`${pods}/local/proxy/`)).text).toBe('local')
  const other = await admin.get(`${pods}/local:${hidden.port}/proxy/`)
  expect([other.status, other.object['message']]).toEqual([400, 'address not allowed'])
})

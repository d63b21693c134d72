import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { issuerFeature } from '../../src/apiserver/features/issuer.ts'
import { workloadFeature } from '../../src/apiserver/features/workload.ts'
import { createMachine } from '../../src/apiserver/users/index.ts'
import { type KubeObject, systemClock } from '../../src/core/index.ts'
import type { HttpsCaller } from '../support/https-caller.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'
import { prepareWhoami, tryAs, whoamiIdentities } from '../support/whoami-rights.ts'

const soon = (): AbortSignal => AbortSignal.timeout(10_000)
const group = 'rbac.authorization.k8s.io'

let server: InProcessServer
let whoami: HttpsCaller
let admin: HttpsCaller

const create = (object: object): Promise<KubeObject> =>
  server.serving.view.write('create', object as KubeObject, {}, soon())
beforeAll(async () => {
  server = await startInProcess({ features: [issuerFeature, workloadFeature] })
  admin = await server.admin()
  whoami = server.as({ token: await prepareWhoami(admin) })
})
afterAll(() => server.close())

describe('the service account of whoami [SEC-R1601]', () => {
  test.each(Object.keys(whoamiIdentities))('as %s', async (who) => {
    const { found, expected } = await tryAs(whoami, who)
    expect(found).toEqual(expected)
  })

  test('for the visitor sees what the visitor may see, and no more', async () => {
    const headers = { 'Impersonate-User': 'visitor' }
    const path = '/api/v1/namespaces/default/configmaps'
    expect((await whoami.get(path, headers)).status).toBe(200)
    const binding = `/apis/${group}/v1/namespaces/default/rolebindings/visitor`
    expect((await admin.delete(binding)).status).toBe(200)
    const refused = await whoami.get(path, headers)
    expect([refused.status, refused.text]).toEqual([403, expect.stringContaining('visitor')])
  })
})

test('the machine of an add-on requests tokens of its service account only [SEC-R1602]', async () => {
  const { view, pki, url } = server.serving
  const machine = {
    name: 'host-whoami',
    namespaces: ['kube-system'],
    serviceAccounts: ['whoami'],
    lifetimeMs: 3_600_000,
    server: url,
  } as const
  const { kubeconfig } = await createMachine(machine, { view, pki, clock: systemClock }, soon())
  const [user] = kubeconfig.users.values()
  const caller = server.as({
    cert: user?.clientCertificateData ?? '',
    key: user?.clientKeyData?.reveal() ?? '',
  })
  await create({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'powerful', namespace: 'kube-system' },
  })
  const token = (name: string, namespace = 'kube-system') =>
    caller.post(`/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: {},
    })
  for (const [name, namespace] of [
    ['powerful', 'kube-system'],
    ['default', 'kube-system'],
    ['default', 'default'],
  ] as const) {
    const { status, text } = await token(name, namespace)
    expect([name, status, text]).toEqual([name, 403, expect.stringContaining('cannot create')])
  }
  // RBAC lets its own through; admission then wants a Pod of this machine.
  expect((await token('whoami')).text).not.toContain('cannot create resource')
})

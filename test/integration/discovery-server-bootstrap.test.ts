import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  generateBootstrapToken,
  mintDiscoveryJwt,
  type StoredToken,
  tokenSecret,
  tokenText,
} from '../../src/bootstrap/index.ts'
import { isRecord, type KubeObject } from '../../src/core/index.ts'
import { attribute, distinguishedName } from '../../src/pki/certificate-lab.suite.ts'
import { labCsr } from '../../src/pki/csr-lab.suite.ts'
import { privateKeyPem } from '../../src/pki/index.ts'
import { eventually } from '../support/eventually.ts'
import type { Credential, HttpsCaller } from '../support/https-caller.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

const csrPath = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
const tokenPath = '/api/v1/namespaces/kube-system/secrets'
const group = 'system:bootstrappers:kubeadm:default-node-token'

let server: InProcessServer
beforeAll(async () => {
  server = await startInProcess()
})
afterAll(() => server.close())

async function createToken(changes: Partial<StoredToken> = {}): Promise<StoredToken> {
  const stored: StoredToken = {
    token: generateBootstrapToken(),
    usages: new Set(['signing', 'authentication']),
    extraGroups: [group],
    ...changes,
  }
  const answer = await (await server.admin()).request(tokenPath, {
    method: 'POST',
    body: tokenSecret(stored),
  })
  expect(answer.status).toBe(201)
  return stored
}

const bearer = ({ token }: StoredToken): HttpsCaller =>
  server.as({ token: tokenText(token).reveal() })

interface Asked {
  readonly node: string
  readonly signer?: string
  readonly usages?: readonly string[]
}

const nodeKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey

function requestFor({ node, signer, usages }: Asked, key = nodeKey()): object {
  const subject = distinguishedName(
    [attribute('O', 'system:nodes')],
    [attribute('CN', `system:node:${node}`)],
  )
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { generateName: 'csr-' },
    spec: {
      request: Buffer.from(labCsr({ subject, key })).toString('base64'),
      signerName: signer ?? 'kubernetes.io/kube-apiserver-client-kubelet',
      usages: usages ?? ['digital signature', 'client auth'],
    },
  }
}

const statusOf = (object: KubeObject): Record<string, unknown> =>
  isRecord(object['status']) ? object['status'] : {}

/** Does what a kubelet does: asks, waits, and keeps key and certificate. */
async function bootstrap(caller: HttpsCaller, asked: Asked): Promise<Credential> {
  const key = nodeKey()
  const made = await caller.request(csrPath, { method: 'POST', body: requestFor(asked, key) })
  expect([made.status, made.text]).toEqual([201, expect.anything()])
  const path = `${csrPath}/${made.object.metadata.name}`
  const certificate = await eventually('signed', async () => {
    const status = statusOf((await caller.get(path)).object)
    return typeof status['certificate'] === 'string' ? status['certificate'] : undefined
  })
  return {
    cert: Buffer.from(certificate, 'base64').toString(),
    key: privateKeyPem(key).reveal(),
  }
}

/** A user with every right in one namespace. */
async function editorOf(namespace: string): Promise<HttpsCaller> {
  const admin = await server.admin()
  const name = `editor-${Math.random().toString(36).slice(2)}`
  await admin.request(`/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings`, {
    method: 'POST',
    body: {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name },
      roleRef: {
        apiGroup: 'rbac.authorization.k8s.io',
        kind: 'ClusterRole',
        name: 'cluster-admin',
      },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name }],
    },
  })
  return server.as(await server.issue(name))
}

describe('a node', () => {
  test('[DISC-S10, DISC-R24] joins with a token, works with its certificate and renews it', async () => {
    const first = await bootstrap(bearer(await createToken()), { node: 'joins' })
    const asNode = server.as(first)
    const body = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'joins' } }
    expect((await asNode.request('/api/v1/nodes', { method: 'POST', body })).status).toBe(201)
    const renewed = await bootstrap(asNode, { node: 'joins' })
    expect(new X509Certificate(renewed.cert ?? '').serialNumber).not.toBe(
      new X509Certificate(first.cert ?? '').serialNumber,
    )
    expect((await server.as(renewed).get('/api/v1/nodes/joins')).status).toBe(200)
  })

  test('[DISC-S10] cannot ask for the name of another node with its certificate', async () => {
    const asNode = server.as(await bootstrap(bearer(await createToken()), { node: 'honest' }))
    const body = requestFor({ node: 'other' })
    const answer = await asNode.request(csrPath, { method: 'POST', body })
    expect([answer.status, answer.text]).toEqual([403, expect.stringContaining('honest')])
  })

  test('[DISC-S11] that is Ready keeps its name', async () => {
    const admin = await server.admin()
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'ready' } }
    await admin.request('/api/v1/nodes', { method: 'POST', body: node })
    const status = { conditions: [{ type: 'Ready', status: 'True' }] }
    await admin.request('/api/v1/nodes/ready/status', {
      method: 'PATCH',
      headers: { 'content-type': 'application/merge-patch+json' },
      body: { status },
    })
    const body = requestFor({ node: 'ready' })
    const answer = await bearer(await createToken()).request(csrPath, { method: 'POST', body })
    expect([answer.status, answer.text]).toEqual([
      403,
      expect.stringContaining('is reserved for the machine that joined under it'),
    ])
  })

  test('[SEC-R1301, SEC-R1302] keeps its name without a Node, until an administrator replaces it', async () => {
    const first = await bootstrap(bearer(await createToken()), { node: 'rebuilt' })
    const body = requestFor({ node: 'rebuilt' })
    const refused = await bearer(await createToken()).request(csrPath, { method: 'POST', body })
    expect([refused.status, refused.text]).toEqual([
      403,
      expect.stringContaining('sallyport token create --replace rebuilt'),
    ])
    const replacing = { boundNodeName: 'rebuilt', maxUses: 1, replaceNodeName: 'rebuilt' }
    const second = await bootstrap(bearer(await createToken(replacing)), { node: 'rebuilt' })
    const path = '/api/v1/nodes/rebuilt'
    const answers = [first, second].map((each) => server.as(each).get(path))
    await eventually('revoked', async () =>
      (await server.as(first).get(path)).status === 401 ? true : undefined,
    )
    expect((await Promise.all(answers)).at(-1)?.status).toBe(404)
  })

  test.each([
    ['create', 'POST', tokenPath, 'replace-node-name'],
    ['create', 'POST', '/api/v1/namespaces/kube-system/configmaps', 'administrators only'],
    ['delete', 'DELETE', '/api/v1/namespaces/kube-system/configmaps', 'administrators only'],
  ])('[SEC-R1305] users who may write in kube-system cannot %s (%s %s)', async (...row) => {
    const [, method, path, words] = row
    const stored = await createToken()
    await bootstrap(bearer(stored), { node: `held-${method}-${words.length}`.toLowerCase() })
    const editor = await editorOf('kube-system')
    const token = tokenSecret({
      ...stored,
      token: generateBootstrapToken(),
      boundNodeName: 'x',
      maxUses: 1,
      replaceNodeName: 'x',
    })
    const reservation = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { generateName: 'sallyport-node-name-' },
    }
    const sent = path === tokenPath ? token : reservation
    const answer = await editor.request(path, {
      method,
      ...(method === 'POST' && { body: sent }),
    })
    expect([answer.status, answer.text]).toEqual([403, expect.stringContaining(words)])
  })

  test('[DISC-S3] gets no certificate by a token that is bound to another name', async () => {
    const stored = await createToken({ boundNodeName: 'bound' })
    const caller = bearer(stored)
    const body = requestFor({ node: 'else' })
    const answer = await caller.request(csrPath, { method: 'POST', body })
    const words = `the token ${stored.token.id} is for the node \\"bound\\" only`
    expect([answer.status, answer.text]).toEqual([403, expect.stringContaining(words)])
    expect((await bootstrap(caller, { node: 'bound' })).cert).toContain('BEGIN CERTIFICATE')
  })

  test('[DISC-S2] gets no certificate by a token that is used up, which another node still reads', async () => {
    const caller = bearer(await createToken({ maxUses: 1 }))
    await bootstrap(caller, { node: 'only' })
    const body = requestFor({ node: 'late' })
    const answer = await caller.request(csrPath, { method: 'POST', body })
    expect([answer.status, answer.text]).toEqual([403, expect.stringContaining('is used up')])
    expect((await caller.get(csrPath)).status).toBe(200)
  })

  test('[DISC-S10] waits for a person when its token has no right to join nodes', async () => {
    const path = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings'
    const admin = await server.admin()
    const strangers = 'system:bootstrappers:strangers'
    const bound = await admin.request(path, {
      method: 'POST',
      body: {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: 'strangers' },
        roleRef: {
          apiGroup: 'rbac.authorization.k8s.io',
          kind: 'ClusterRole',
          name: 'system:node-bootstrapper',
        },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: strangers }],
      },
    })
    expect(bound.status).toBe(201)
    const caller = bearer(await createToken({ extraGroups: [strangers] }))
    const joining = bootstrap(caller, { node: 'stranger' })
    const pending = await eventually('asked for', async () => {
      const { items } = (await admin.get(csrPath)).object as unknown as { items: KubeObject[] }
      return items.find(({ spec }) => isRecord(spec) && String(spec['groups']).includes(strangers))
    })
    const condition = { type: 'Approved', status: 'True', reason: 'ByHand', message: '' }
    const approval = { ...pending, status: { conditions: [condition] } }
    const approved = await admin.request(`${csrPath}/${pending.metadata.name}/approval`, {
      method: 'PUT',
      body: approval,
    })
    expect([approved.status, (await joining).cert]).toEqual([
      200,
      expect.stringContaining('BEGIN CERTIFICATE'),
    ])
  })
})

test('[DISC-S9] a discovery request never asks for a certificate, whatever its token may do', async () => {
  const { token } = await createToken()
  const caller = server.as({ token: mintDiscoveryJwt(token, Date.now()) })
  const answer = await caller.request(csrPath, { method: 'POST', body: requestFor({ node: 'x' }) })
  expect(answer.status).toBe(403)
})

test('[DISC-S10] what becomes of requests is counted', async () => {
  await bootstrap(bearer(await createToken()), { node: 'counted' })
  const { text } = await (await server.admin()).get('/metrics')
  const signer = 'kubernetes.io/kube-apiserver-client-kubelet'
  for (const outcome of ['approved', 'signed'])
    expect(text).toMatch(
      new RegExp(
        `^sallyport_certificate_requests_total\\{signer="${signer}",outcome="${outcome}"\\} [1-9]`,
        'm',
      ),
    )
})

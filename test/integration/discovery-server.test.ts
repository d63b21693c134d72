import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  generateBootstrapToken,
  mintDiscoveryJwt,
  parseBootstrapToken,
  type StoredToken,
  tokenSecret,
  tokenText,
  verifySignature,
} from '../../src/bootstrap/index.ts'
import { eventually } from '../support/eventually.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

const infoPath = '/api/v1/namespaces/kube-public/configmaps/cluster-info'
const tokenPath = '/api/v1/namespaces/kube-system/secrets'

let server: InProcessServer
beforeAll(async () => {
  server = await startInProcess()
})
afterAll(() => server.close())

async function createToken(changes: Partial<StoredToken> = {}): Promise<StoredToken> {
  const stored: StoredToken = {
    token: generateBootstrapToken(),
    usages: new Set(['signing', 'authentication']),
    extraGroups: ['system:bootstrappers:kubeadm:default-node-token'],
    ...changes,
  }
  const answer = await (await server.admin()).request(tokenPath, {
    method: 'POST',
    body: tokenSecret(stored),
  })
  expect(answer.status).toBe(201)
  return stored
}

const clusterInfo = async () => {
  const { data } = (await (await server.admin()).get(infoPath)).object as unknown as {
    data: Record<string, string>
  }
  return data
}

describe('cluster-info', () => {
  test('[DISC-R39] is in kube-public, whose ConfigMaps and nothing else every user can read', async () => {
    const { token } = await createToken({ extraGroups: [] })
    const somebody = server.as({ token: tokenText(token).reveal() })
    const paths = [
      infoPath,
      '/api/v1/namespaces/kube-public/configmaps',
      '/api/v1/namespaces/kube-public/secrets',
      '/api/v1/namespaces/kube-system/configmaps',
    ]
    const statuses = paths.map(async (path) => (await somebody.get(path)).status)
    expect(await Promise.all(statuses)).toEqual([200, 200, 403, 403])
  })

  test('[DISC-R6, DISC-R7] is there from the start, with one unnamed cluster and nothing secret', async () => {
    const { kubeconfig = '' } = await clusterInfo()
    expect(kubeconfig).toContain(`server: https://127.0.0.1:${server.port}\n  name: ""`)
    expect(kubeconfig).toContain(
      Buffer.from(server.serving.pki.clusterCa.bundlePem).toString('base64'),
    )
    expect(kubeconfig).toMatch(/users: null/)
  })

  test('[DISC-S7] can be read without a credential', async () => {
    expect((await server.as({}).get(infoPath)).status).toBe(200)
  })

  test('[DISC-S8] carries the signature of every token that may sign, until the token is gone', async () => {
    const { token } = await createToken()
    const name = `jws-kubeconfig-${token.id}`
    const signed = await eventually('signed', async () => {
      const data = await clusterInfo()
      return data[name] === undefined ? undefined : data
    })
    const kubeconfig = Buffer.from(signed['kubeconfig'] ?? '')
    expect(() => verifySignature(signed[name] ?? '', kubeconfig, token)).not.toThrow()
    const secret = `${tokenPath}/bootstrap-token-${token.id}`
    await (await server.admin()).request(secret, { method: 'DELETE' })
    await eventually('no longer signed', async () => (await clusterInfo())[name] === undefined)
  })

  test('[DISC-T6] loses the signature of a token that expires, and the token itself', async () => {
    const { token } = await createToken({ expiresAt: Date.now() + 1_500 })
    const name = `jws-kubeconfig-${token.id}`
    await eventually('signed', async () => (await clusterInfo())[name])
    await eventually('no longer signed', async () => (await clusterInfo())[name] === undefined)
    const secret = `${tokenPath}/bootstrap-token-${token.id}`
    const status = async () => (await (await server.admin()).get(secret)).status
    await eventually('deleted', async () => (await status()) === 404)
    expect(await status()).toBe(404)
  })
})

describe('a signed request', () => {
  test('[DISC-R28, DISC-R40, DISC-R42, DISC-T4] is answered with the very bytes that were signed', async () => {
    const { token } = await createToken()
    const caller = server.as({ token: mintDiscoveryJwt(token, Date.now()) })
    for (const accept of [
      'application/json',
      'application/yaml',
      'application/vnd.kubernetes.protobuf,application/json',
    ]) {
      const answer = await caller.get(infoPath, { accept, 'accept-encoding': 'gzip' })
      expect([answer.status, answer.headers['content-encoding']]).toEqual([200, undefined])
      const signature = String(answer.headers['x-kubernetes-jws'])
      expect(() => verifySignature(signature, Buffer.from(answer.text), token)).not.toThrow()
    }
  })

  test.each([
    ['another object', '/api/v1/namespaces/kube-public/configmaps/other', 'GET'],
    ['the list', '/api/v1/namespaces/kube-public/configmaps', 'GET'],
    [
      'a watch',
      '/api/v1/namespaces/kube-public/configmaps?watch=true&fieldSelector=metadata.name%3Dcluster-info',
      'GET',
    ],
    ['secrets', tokenPath, 'GET'],
    ['a certificate', '/apis/certificates.k8s.io/v1/certificatesigningrequests', 'POST'],
    ['who it is', '/apis/authentication.k8s.io/v1/selfsubjectreviews', 'POST'],
    ['deleting it', infoPath, 'DELETE'],
  ])(
    '[DISC-S9, DISC-R42] for %s is refused whatever its token may do, and the refusal is signed',
    async (_name, path, method) => {
      const { token } = await createToken()
      const answer = await server
        .as({ token: mintDiscoveryJwt(token, Date.now()) })
        .request(path, { method })
      expect(answer.status).toBe(403)
      const signature = String(answer.headers['x-kubernetes-jws'])
      expect(() => verifySignature(signature, Buffer.from(answer.text), token)).not.toThrow()
    },
  )

  test.each([
    ['an unknown token', () => parseBootstrapToken('zzzzzz.0123456789abcdef'), 0],
    [
      'a token that has another secret',
      (id: string) => parseBootstrapToken(`${id}.0123456789abcdef`),
      0,
    ],
    ['a clock far off', undefined, 600_000],
  ])('[DISC-R31, DISC-R33, DISC-S13] with %s is 401', async (_name, forge, offsetMs) => {
    const { token } = await createToken()
    const signer = forge ? forge(token.id) : token
    const jwt = mintDiscoveryJwt(signer, Date.now() + offsetMs)
    const answer = await server.as({ token: jwt }).get(infoPath)
    expect([answer.status, answer.headers['x-kubernetes-jws']]).toEqual([401, undefined])
  })
})

describe('a token that is shown as it is', () => {
  test('[DISC-R41] is a bootstrapper, and its answers are not signed', async () => {
    const { token } = await createToken()
    const caller = server.as({ token: tokenText(token).reveal() })
    const answer = await caller.get(infoPath)
    expect([answer.status, answer.headers['x-kubernetes-jws']]).toEqual([200, undefined])
    const who = await caller.request('/apis/authentication.k8s.io/v1/selfsubjectreviews', {
      method: 'POST',
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
    })
    expect(who.object['status']).toMatchObject({
      userInfo: {
        username: `system:bootstrap:${token.id}`,
        groups: [
          'system:bootstrappers',
          'system:bootstrappers:kubeadm:default-node-token',
          'system:authenticated',
        ],
      },
    })
  })

  test('[DISC-R24] is refused when it is not for authentication', async () => {
    const { token } = await createToken({ usages: new Set(['signing']) })
    expect((await server.as({ token: tokenText(token).reveal() }).get(infoPath)).status).toBe(401)
  })
})

test('[DISC-S1] a Secret that could never work as a token is refused with the reason', async () => {
  const secret = tokenSecret({
    token: generateBootstrapToken(),
    usages: new Set(['signing']),
    extraGroups: ['system:masters'],
  })
  const answer = await (await server.admin()).request(tokenPath, { method: 'POST', body: secret })
  expect([answer.status, answer.text]).toEqual([422, expect.stringContaining('system:masters')])
})

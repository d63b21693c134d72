import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { generateBootstrapToken, tokenSecret, tokenText } from '../../../src/bootstrap/index.ts'
import { spkiPin } from '../../../src/pki/index.ts'
import { eventually } from '../../support/eventually.ts'
import { type InProcessServer, startInProcess } from '../../support/in-process-server.ts'
import { type Outcome, run } from '../../support/kubectl.ts'
import { findPeer, pathOrReason } from '../../support/peers.ts'

const kubeadm = pathOrReason(findPeer('kubeadm-1.36'))
const tokenPath = '/api/v1/namespaces/kube-system/secrets'
const infoPath = '/api/v1/namespaces/kube-public/configmaps/cluster-info'

let scratch = ''
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'sallyport-kubeadm-'))
})
afterAll(() => rm(scratch, { recursive: true, force: true }))

async function createToken(server: InProcessServer): Promise<string> {
  const token = generateBootstrapToken()
  const usages = new Set(['signing', 'authentication'] as const)
  const extraGroups = ['system:bootstrappers:kubeadm:default-node-token']
  const body = tokenSecret({ token, usages, extraGroups })
  await (await server.admin()).request(tokenPath, { method: 'POST', body })
  await eventually('signed', async () => {
    const { data } = (await (await server.admin()).get(infoPath)).object as unknown as {
      data: Record<string, string>
    }
    return data[`jws-kubeconfig-${token.id}`]
  })
  return tokenText(token).reveal()
}

const pinOf = (server: InProcessServer): string => spkiPin(server.serving.pki.clusterCa.certificate)
const addressOf = (server: InProcessServer): string => `127.0.0.1:${server.port}`

let files = 0
async function write(text: string): Promise<string> {
  const path = join(scratch, `file-${++files}`)
  await writeFile(path, text)
  return path
}

/** Runs the phase that discovers the cluster and reads what it says, and changes nothing here. */
function preflight(...args: readonly string[]): Promise<Outcome> {
  const constant = ['--ignore-preflight-errors=all', '--v=1']
  return run(kubeadm ?? '', ['join', 'phase', 'preflight', ...args, ...constant])
}

/** A configuration that gives up sooner than after five minutes. */
const impatient = (discovery: object, timeout = '30s'): Promise<string> =>
  write(
    JSON.stringify({
      apiVersion: 'kubeadm.k8s.io/v1beta4',
      kind: 'JoinConfiguration',
      discovery,
      nodeRegistration: { name: 'n1', criSocket: 'unix:///nowhere.sock' },
      timeouts: { discovery: timeout },
    }),
  )

const asJoiner = ['--node-name=n1', '--cri-socket=unix:///nowhere.sock']

/** What this token has asked the server for and got. */
function readBy(server: InProcessServer, token: string): string[] {
  const user = `system:bootstrap:${token.slice(0, 6)}`
  const lines = readFileSync(join(server.dataDirectory, 'audit.log'), 'utf8').trim().split('\n')
  return lines
    .map((line) => JSON.parse(line))
    .filter((event) => event.user.username === user && event.responseStatus?.code === 200)
    .map((event) => event.objectRef.name)
}

const joinDocuments = ['kubeadm-config', 'kube-proxy', 'kubelet-config']

/** The document as an operator hands it out, with a credential if one is given. */
async function discoveryFile(server: InProcessServer, token?: string): Promise<string> {
  const ca = Buffer.from(server.serving.pki.clusterCa.bundlePem).toString('base64')
  const cluster = { server: `https://${addressOf(server)}`, 'certificate-authority-data': ca }
  // A context must name its cluster.
  const name = token === undefined ? '' : 'here'
  const credential = token !== undefined && {
    users: [{ name: 'joiner', user: { token } }],
    contexts: [{ name: 'joiner', context: { cluster: name, user: 'joiner' } }],
    'current-context': 'joiner',
  }
  return write(
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name, cluster }],
      ...credential,
    }),
  )
}

async function expectDocumentsRead(server: InProcessServer, token: string): Promise<void> {
  const read = await eventually('audited', () => {
    const names = readBy(server, token)
    return joinDocuments.every((name) => names.includes(name)) && names
  })
  expect(read).toEqual(expect.arrayContaining(joinDocuments))
}

describe.skipIf(!kubeadm)('kubeadm 1.36', () => {
  let server: InProcessServer
  beforeAll(async () => {
    server = await startInProcess()
  })
  afterAll(() => server.close())

  test.each([
    ['with the pin of the CA', () => ['--discovery-token-ca-cert-hash', pinOf(server)]],
    ['without one', () => ['--discovery-token-unsafe-skip-ca-verification']],
  ])(
    '[DISC-T8, DISC-S8, DISC-S12] discovers us by a token %s and reads its documents',
    async (_name, pin) => {
      const token = await createToken(server)
      const outcome = await preflight(addressOf(server), '--token', token, ...pin(), ...asJoiner)
      expect([outcome.code, outcome.stderr]).toEqual([
        0,
        expect.stringContaining('Cluster info signature and contents are valid'),
      ])
      await expectDocumentsRead(server, token)
    },
  )

  test('[DISC-T8] discovers us by a file', async () => {
    const token = await createToken(server)
    const file = await discoveryFile(server)
    const outcome = await preflight('--discovery-file', file, '--token', token, ...asJoiner)
    expect([outcome.code, outcome.stderr]).toEqual([0, expect.anything()])
    await expectDocumentsRead(server, token)
  })

  test.each([
    [
      'a wrong secret',
      (token: string) => ({
        token: `${token.slice(0, 7)}0123456789abcdef`,
        caCertHashes: [pinOf(server)],
      }),
      'failed to verify JWS signature of received cluster info object',
    ],
    [
      'a wrong pin',
      (token: string) => ({ token, caCertHashes: [`sha256:${'0'.repeat(64)}`] }),
      'none of the public keys',
    ],
    [
      'an unknown id',
      () => ({ token: 'zzzzzz.0123456789abcdef', caCertHashes: [pinOf(server)] }),
      'could not find a JWS signature in the cluster-info ConfigMap for token ID "zzzzzz"',
    ],
  ])('[DISC-T8] refuses us with %s', async (name, discovery, words) => {
    const token = await createToken(server)
    const bootstrapToken = { ...discovery(token), apiServerEndpoint: addressOf(server) }
    // A signature that is not there may still come, so it is waited for; a wrong one is final.
    const timeout = name === 'an unknown id' ? '5s' : '30s'
    const config = await impatient({ bootstrapToken, tlsBootstrapToken: token }, timeout)
    const outcome = await preflight('--config', config)
    expect([outcome.code, outcome.stderr]).toEqual([1, expect.stringContaining(words)])
    expect(readBy(server, token)).toEqual([])
  })
})

describe.skipIf(!kubeadm)('kubeadm 1.36 with anonymous access off', () => {
  let server: InProcessServer
  beforeAll(async () => {
    server = await startInProcess({ flags: ['--anonymous-auth=false'] })
  })
  afterAll(() => server.close())

  test('[DISC-T14] joins by a discovery file that carries a credential', async () => {
    const token = await createToken(server)
    const file = await discoveryFile(server, token)
    const outcome = await preflight('--discovery-file', file, ...asJoiner)
    expect([outcome.code, outcome.stderr]).toEqual([0, expect.anything()])
    await expectDocumentsRead(server, token)
  })

  test('[DISC-T14] gives up after its timeout without one', async () => {
    const token = await createToken(server)
    const bootstrapToken = {
      token,
      caCertHashes: [pinOf(server)],
      apiServerEndpoint: addressOf(server),
    }
    const outcome = await preflight('--config', await impatient({ bootstrapToken }, '5s'))
    expect([outcome.code, outcome.stderr]).toEqual([1, expect.stringContaining('Unauthorized')])
  })
})

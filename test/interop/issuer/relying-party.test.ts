import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  createServiceAccountVerifier,
  type VerifierOptions,
} from '../../../src/issuer/relying-party/index.ts'
import { runInProcess } from '../../support/in-process-command.ts'
import {
  hasKubeApiserver,
  type KubeApiserverProcess,
  startKubeApiserver,
} from '../../support/kube-apiserver-process.ts'
import { LiveServer } from '../same-answers/live-server.ts'

const issuer = 'https://kubernetes.default.svc.cluster.local'
const accounts = '/api/v1/namespaces/default/serviceaccounts'

describe.skipIf(!hasKubeApiserver())('tokens of a kube-apiserver are verified from outside', () => {
  let peer: KubeApiserverProcess
  let cluster: LiveServer
  let options: VerifierOptions
  const post = async (path: string, body: object): Promise<unknown> =>
    (await cluster.answer({ method: 'POST', path, body }, '')).json
  const newToken = async (name: string): Promise<string> => {
    await post(accounts, { metadata: { name } })
    const wish = { spec: { audiences: ['vault'] } }
    const made = (await post(`${accounts}/${name}/token`, wish)) as { status: { token: string } }
    return made.status.token
  }

  beforeAll(async () => {
    peer = await startKubeApiserver([])
    const { address, caPem, adminToken } = peer
    cluster = new LiveServer({ address, ca: caPem, tokens: { admin: adminToken } })
    options = {
      issuer,
      audience: 'vault',
      caPem,
      allowPrivateAddresses: true,
      discoveryUrl: `${address}/.well-known/openid-configuration`,
      credential: { origin: address, token: () => adminToken },
    }
  })
  afterAll(async () => {
    cluster?.close()
    await peer?.stop()
  })

  test('with a credential for documents that are not public [ISS-P1]', async () => {
    const token = await newToken('bot')
    expect(await createServiceAccountVerifier(options).verify(token)).toMatchObject({
      subject: 'system:serviceaccount:default:bot',
      namespace: 'default',
      audiences: ['vault'],
    })
    const stranger = createServiceAccountVerifier({ ...options, credential: undefined })
    await expect(stranger.verify(token)).rejects.toMatchObject({ code: 'bad-status' })
  })

  test('and explained by the command, with a kubeconfig [ISS-P4]', async () => {
    const file = join(peer.directory, 'token')
    await writeFile(file, await newToken('told'))
    const source = ['--token-file', file, '--kubeconfig', peer.kubeconfig]
    const demand = ['--issuer', issuer, '--audience', 'vault']
    const { code, stdout } = await runInProcess(['issuer', 'verify', ...source, ...demand])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^service account +passed +default\/told /m)
  })

  test('what only the cluster sees: the account is gone, its token is not [ISS-P7]', async () => {
    const token = await newToken('gone')
    await cluster.answer({ method: 'DELETE', path: `${accounts}/gone` }, '')
    const review = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token, audiences: ['vault'] },
    }
    const path = '/apis/authentication.k8s.io/v1/tokenreviews'
    const { status } = (await post(path, review)) as { status: { authenticated?: boolean } }
    expect(status.authenticated).not.toBe(true)
    expect(await createServiceAccountVerifier(options).verify(token)).toMatchObject({
      serviceAccount: { name: 'gone' },
    })
  })
})

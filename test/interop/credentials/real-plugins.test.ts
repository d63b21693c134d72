import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Secret } from '../../../src/core/index.ts'
import { nodePluginHost, runPlugin } from '../../../src/credentials/index.ts'
import { findProgram, type Peer, pathOrReason } from '../../support/peers.ts'

const group = 'client.authentication.k8s.io'

function findAws(): Peer {
  const cache = process.env['SALLYPORT_PEERS'] ?? join(homedir(), '.cache/sallyport-peers')
  const path = join(cache, 'awscli/bin/aws')
  return existsSync(path) ? { path } : findProgram('aws')
}

let home: string
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'sallyport-real-plugins-'))
})
afterAll(() => rm(home, { recursive: true, force: true }))

/** Nothing of the user's own accounts reaches the plugin. */
const host = () =>
  nodePluginHost({
    env: { PATH: process.env['PATH'], HOME: home },
    stdinIsTty: () => false,
    stderr: new Writable({ write: (_chunk, _encoding, done) => done() }),
  })

const variables = (env: Readonly<Record<string, string>>) =>
  Object.entries(env).map(([name, value]) => ({ name, value: new Secret(value) }))

const aws = pathOrReason(findAws())

describe.skipIf(!aws)('aws eks get-token, which only signs', () => {
  const exec = (apiVersion: string, env: Readonly<Record<string, string>>) => ({
    command: aws ?? '',
    args: ['--region', 'eu-west-1', 'eks', 'get-token', '--cluster-name', 'it', '--output', 'json'],
    env: variables({ AWS_EC2_METADATA_DISABLED: 'true', ...env }),
    apiVersion: `${group}/${apiVersion}`,
    interactiveMode: 'IfAvailable',
  })
  const keys = { AWS_ACCESS_KEY_ID: 'AKIAIOSFODNN7EXAMPLE', AWS_SECRET_ACCESS_KEY: 'dummy' }

  test.each(['v1beta1', 'v1'])(
    'gives a token for 14 minutes in %s, because it is told the version [CRED-I3, CRED-R4]',
    async (version) => {
      const { token, expiresAt } = await runPlugin({ exec: exec(version, keys) }, host())
      const signed = token?.reveal().replace('k8s-aws-v1.', '') ?? ''
      const url = new URL(Buffer.from(signed, 'base64url').toString())
      expect(url.searchParams.get('X-Amz-Credential')).toContain(keys.AWS_ACCESS_KEY_ID)
      const minutes = ((expiresAt ?? 0) - Date.now()) / 60_000
      expect(minutes).toBeGreaterThan(12)
      expect(minutes).toBeLessThan(15)
    },
  )

  test('without keys its failure has a code, and no word of its output [CRED-I3, CRED-R2]', async () => {
    const failure = runPlugin({ exec: exec('v1', {}) }, host())
    await expect(failure).rejects.toMatchObject({ code: 'EXIT', command: aws })
    await expect(failure).rejects.not.toThrow('Unable to locate credentials')
  })
})

const gke = pathOrReason(findProgram('gke-gcloud-auth-plugin'))

// It comes with Google's own packages only: where it is absent, there is nothing to skip.
describe.each(gke ? [gke] : [])('%s with a token from its environment', (command) => {
  const exec = (apiVersion: string) => ({
    command,
    env: variables({ CLOUDSDK_AUTH_ACCESS_TOKEN: 'dummy-token', CLOUDSDK_CONFIG: home }),
    apiVersion: `${group}/${apiVersion}`,
    interactiveMode: 'IfAvailable',
    provideClusterInfo: true,
  })
  const cluster = { server: 'https://192.0.2.1' }

  test('gives that token [CRED-I3]', async () => {
    await writeFile(join(home, 'active_config'), 'default')
    const { token, expiresAt } = await runPlugin({ exec: exec('v1beta1'), cluster }, host())
    expect([token?.reveal(), expiresAt]).toEqual(['dummy-token', undefined])
  })

  test('answers in v1beta1 whatever it is asked for, which is an error for v1 [CRED-I3, CRED-R12]', async () => {
    await expect(runPlugin({ exec: exec('v1'), cluster }, host())).rejects.toMatchObject({
      code: 'VERSION_MISMATCH',
    })
  })
})

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Secret } from '../core/index.ts'
import type { KubeconfigUser } from '../kubeconfig/index.ts'
import { transportFromKubeconfig } from './kubeconfig-transport.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'kubeconfig-transport-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

const cluster = { server: 'https://example.com:6443/prefix' }

describe('a context of a kubeconfig', () => {
  test('becomes a transport to its server', async () => {
    const transport = await transportFromKubeconfig({ cluster, user: { token: new Secret('t') } })
    expect(transport.server).toBe('https://example.com:6443/prefix')
    transport.destroy()
  })

  test.each<[string, KubeconfigUser, RegExp]>([
    ['an exec plugin', { exec: { command: 'login', apiVersion: 'v1' } }, /exec plugin/],
    ['an auth provider', { authProvider: { name: 'gcp' } }, /auth-provider/],
    ['a password', { username: 'me', password: new Secret('hunter2') }, /username and password/],
  ])('is refused for %s rather than used without it', async (_, user, message) => {
    const attempt = transportFromKubeconfig({ cluster, user })
    await expect(attempt).rejects.toThrow(message)
    await expect(attempt).rejects.toMatchObject({ code: 'CLIENT_CONFIG_INVALID' })
  })

  test('is refused for a proxy rather than used around it', async () => {
    const proxied = { ...cluster, proxyUrl: 'http://me:hunter2@proxy' }
    await expect(transportFromKubeconfig({ cluster: proxied, user: {} })).rejects.toThrow(
      /^proxy-url of a cluster is not supported$/,
    )
  })

  test('is refused when a file that it names cannot be read, and names it', async () => {
    const certificateAuthority = join(directory, 'absent.crt')
    const attempt = transportFromKubeconfig({
      cluster: { ...cluster, certificateAuthority },
      user: {},
    })
    await expect(attempt).rejects.toThrow(`cannot read ${certificateAuthority}`)
  })

  test('with a file of nonsense for a key is refused', async () => {
    const clientKey = join(directory, 'client.key')
    await writeFile(clientKey, 'nonsense')
    const user = { clientKey, clientCertificateData: 'nonsense' }
    await expect(transportFromKubeconfig({ cluster, user })).rejects.toThrow(/cannot be used/)
  })
})

import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Secret, systemClock } from '../core/index.ts'
import type { Cluster, KubeconfigUser } from '../kubeconfig/index.ts'
import { readCredentialFile } from './credential-file.ts'
import { execClusterInfo, nodePluginHost } from './exec/index.ts'
import { credentialSourceFor, trustSourceFor } from './sources/index.ts'
import { oidcConfig, refreshTokens } from './sources/oidc-refresh.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'credential-file-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

const at = (name: string): string => join(directory, name)

function pipe(): string {
  const path = at('pipe')
  execFileSync('mkfifo', [path])
  return path
}

describe('a file that a kubeconfig names', () => {
  test('is read whole, also one that states no size', async () => {
    expect(await readCredentialFile(import.meta.filename)).toMatch(/^import[^]*\}\)\n$/)
    expect(await readCredentialFile('/proc/self/status')).toContain('Name:')
  })

  test.each([
    ['/dev/zero', 'is not a regular file'],
    ['/dev/null', 'is not a regular file'],
    ['/', 'is not a regular file'],
    ['/nowhere/token', 'ENOENT'],
    ['/etc/passwd\0', 'unknown error|ERR_INVALID_ARG_VALUE'],
  ])('%j is refused [SEC-R2401]', async (path, why) => {
    await expect(readCredentialFile(path)).rejects.toMatchObject({
      code: 'FILE',
      message: expect.stringMatching(why),
    })
  })

  test('that is too large is refused [SEC-R2401]', async () => {
    writeFileSync(at('large'), 'x'.repeat(4 * 1024 * 1024 + 1))
    await expect(readCredentialFile(at('large'))).rejects.toThrow('is too large')
  })

  test('that is a named pipe or a socket is refused without waiting for its other end [SEC-R2401]', async () => {
    await expect(readCredentialFile(pipe())).rejects.toThrow('is not a regular file')
    const server = createServer().listen(at('socket'))
    await new Promise((resolve) => server.once('listening', resolve))
    await expect(readCredentialFile(at('socket'))).rejects.toMatchObject({ code: 'FILE' })
    server.close()
  })
})

describe('a named pipe without a writer is refused in every field that names a file [SEC-R2401]', () => {
  const current = async (user: KubeconfigUser): Promise<unknown> => {
    const cluster = { server: 'https://cluster:6443' }
    const names = { contextName: 'c', clusterName: 'c', userName: 'u', namespace: 'default' }
    const host = { plugins: nodePluginHost(), registry: 'none' } as const
    return credentialSourceFor({ ...names, cluster, user }, host).source?.current()
  }
  const cluster = (path: string): Cluster => ({
    server: 'https://cluster:6443',
    certificateAuthority: path,
  })
  const oidc = (path: string) => ({
    name: 'oidc',
    config: {
      'idp-issuer-url': new Secret('https://issuer'),
      'client-id': new Secret('client'),
      'idp-certificate-authority': new Secret(path),
    },
  })
  const fields: Record<string, (path: string) => Promise<unknown> | undefined> = {
    tokenFile: (path) => current({ tokenFile: path }),
    'client-certificate': (path) =>
      current({ clientCertificate: path, clientKeyData: new Secret('key') }),
    'client-key': (path) => current({ clientCertificateData: 'certificate', clientKey: path }),
    'certificate-authority': (path) => trustSourceFor(cluster(path), systemClock)?.current(),
    'certificate-authority with provideClusterInfo': (path) => execClusterInfo(cluster(path)),
    'idp-certificate-authority': (path) =>
      refreshTokens(oidcConfig(oidc(path)), new Secret('token'), new AbortController().signal),
  }

  test.each(Object.entries(fields))('%s', async (_field, read) => {
    await expect(read(pipe())).rejects.toMatchObject({
      code: 'FILE',
      message: expect.stringContaining('is not a regular file'),
    })
  })
})

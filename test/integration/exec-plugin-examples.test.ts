import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { nodePluginHost, type PluginHost, runPlugin } from '../../src/credentials/exec/index.ts'
import { buildOnce } from '../build-once.ts'
import { DeviceProvider } from '../support/device-provider.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 })

const examples = fileURLToPath(new URL('../../examples/exec-plugins', import.meta.url))
const apiVersion = 'client.authentication.k8s.io/v1'

let directory: string
let dist: string
let home: string

/** The examples beside an installed package, as a user of the package has them. */
beforeAll(async () => {
  dist = await buildOnce()
  directory = mkdtempSync(join(tmpdir(), 'sallyport-examples-'))
  cpSync(examples, directory, { recursive: true })
  const installed = join(directory, 'node_modules', 'sallyport')
  mkdirSync(installed, { recursive: true })
  symlinkSync(dist, join(installed, 'dist'))
  const exports = {
    './exec-plugin': './dist/credentials/exec-plugin/index.js',
    './kubeconfig': './dist/kubeconfig/index.js',
  }
  writeFileSync(
    join(installed, 'package.json'),
    JSON.stringify({ name: 'sallyport', type: 'module', exports }),
  )
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))
beforeEach(() => {
  home = mkdtempSync(join(directory, 'home-'))
})

class Screen extends Writable {
  text = ''
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString()
    done()
  }
}

function run(name: string, args: readonly string[], rules: Partial<PluginHost> = {}) {
  const exec = {
    command: join(directory, name, 'plugin.mjs'),
    args,
    apiVersion,
    interactiveMode: 'Never',
  }
  const env = { ...process.env, HOME: home }
  return runPlugin({ exec }, nodePluginHost({ env, stderr: new Screen(), ...rules }))
}

describe('against a server', () => {
  let server: InProcessServer
  const whoAmI = async (credential: { cert?: string; key?: string; token?: string }) => {
    const answer = await server
      .as(credential)
      .post('/apis/authentication.k8s.io/v1/selfsubjectreviews', {
        kind: 'SelfSubjectReview',
        apiVersion: 'authentication.k8s.io/v1',
      })
    return answer.object['status']
  }

  beforeAll(async () => {
    const tokens = join(directory, 'tokens.csv')
    writeFileSync(tokens, 'the-token-of-joe,joe,1\n', { mode: 0o600 })
    server = await startInProcess({ flags: ['--token-auth-file', tokens] })
  })
  afterAll(() => server.close())

  test('static-token gives the token of a file [CRED-A3]', async () => {
    const file = join(home, 'token')
    writeFileSync(file, 'the-token-of-joe\n')
    const { token } = await run('static-token', [file])
    expect(await whoAmI({ token: token?.reveal() ?? '' })).toMatchObject({
      userInfo: { username: 'joe' },
    })
  })

  test('client-certificate gives one of our CA, and keeps it [CRED-A3]', async () => {
    const issue = [process.execPath, join(dist, 'cli', 'main.js'), 'user', 'create', 'jane']
    const args = [...issue, '--lifetime', '1h', '--out', '-', '--data-dir', server.dataDirectory]
    const first = await run('client-certificate', args)
    const { certPem: cert = '', keyPem } = first.clientCertificate ?? {}
    expect(await whoAmI({ cert, key: keyPem?.reveal() ?? '' })).toMatchObject({
      userInfo: { username: 'jane' },
    })
    const leftMs = (first.expiresAt ?? 0) - Date.now()
    expect(leftMs).toBeGreaterThan(50 * 60_000)
    expect(leftMs).toBeLessThan(60 * 60_000)
    const second = await run('client-certificate', args)
    expect(second.clientCertificate?.certPem).toBe(cert)
  })
})

describe('oidc-device-login', () => {
  const provider = new DeviceProvider()
  beforeAll(() => provider.start())
  afterAll(() => provider.stop())

  const codeOn = (screen: Screen): Promise<string> =>
    vi.waitFor(
      () => {
        const code = /enter the code (\S+)/.exec(screen.text)?.[1]
        if (code === undefined) throw new Error(`no code yet: ${screen.text}`)
        return code
      },
      { timeout: 20_000, interval: 20 },
    )
  const logIn = (screen: Screen) =>
    run('oidc-device-login', [provider.issuer, 'kubernetes'], { stderr: screen })

  test('asks once, waits for the user and remembers the login [CRED-A3]', async () => {
    const before = provider.logins
    const screens = [new Screen(), new Screen(), new Screen()]
    const runs = Promise.all(screens.map(logIn))
    const code = await Promise.any(screens.map(codeOn))
    expect(screens.map(({ text }) => text).join('')).not.toContain('\x1b')
    provider.decide(code, 'approved')
    const tokens = (await runs).map(({ token }) => token?.reveal())
    expect(new Set(tokens).size).toBe(1)
    const again = await logIn(new Screen())
    expect(again.token?.reveal()).toBe(tokens[0])
    expect(again.expiresAt).toBeGreaterThan(Date.now())
    expect(provider.logins - before).toBe(1)
  })

  test('says why there is no login [CRED-A3]', async () => {
    const screen = new Screen()
    const [failed] = await Promise.allSettled([
      logIn(screen),
      codeOn(screen).then((code) => provider.decide(code, 'denied')),
    ])
    expect(failed).toMatchObject({ reason: { code: 'EXIT', exitCode: 1 } })
    expect(screen.text).toContain('access_denied')
  })

  test('sends nothing to a provider without TLS elsewhere', async () => {
    const screen = new Screen()
    const attempt = run('oidc-device-login', ['http://login.example', 'kubernetes'], {
      stderr: screen,
    })
    await expect(attempt).rejects.toMatchObject({ code: 'EXIT' })
    expect(screen.text).toContain('not an https address')
  })
})

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { MetricsRegistry, Secret } from '../../core/index.ts'
import type { Cluster, ExecConfig } from '../../kubeconfig/index.ts'
import { labCertificate, labNow, named } from '../../pki/certificate-lab.suite.ts'
import { CredentialError } from '../errors.ts'
import type { PluginHost, PluginRun } from '../exec/index.ts'
import { type ExecSourceHost, execKey, execMetrics, execSource } from './exec-source.ts'
import { EventLog, FakeClock, pluginFailure, refusal401, tokenOfRun } from './fake-plugin.suite.ts'
import { SourceRegistry } from './source-registry.ts'

const cluster: Cluster = { server: 'https://a:6443' }
const exec: ExecConfig = {
  command: 'login',
  args: ['token', '-i', '(CLUSTER_ID)'],
  env: [{ name: 'PROFILE', value: new Secret('prod') }],
  apiVersion: 'client.authentication.k8s.io/v1',
  interactiveMode: 'Never',
}

let clock: FakeClock
let runs: PluginRun[]
let plugins: PluginHost
let host: ExecSourceHost

beforeEach(() => {
  clock = new FakeClock()
  runs = []
  plugins = {
    env: {},
    cwd: '/',
    platform: 'linux',
    clock,
    stdinIsTty: () => false,
    stderr: 'inherit',
    killGroup: () => {},
  }
  host = {
    plugins,
    registry: new SourceRegistry(),
    run: async (run) => tokenOfRun(runs.push(run)),
  }
})

describe('clients that are built again', () => {
  test('share the credential of the same configuration [CRED-R17, CRED-C1]', async () => {
    const first = execSource(exec, cluster, host)
    const credential = await first.current()
    first.dispose()
    const again = { ...exec, args: [...(exec.args ?? [])] }
    const second = execSource(again, { server: 'https://other' }, host)
    expect(await second.current()).toBe(credential)
    expect(runs).toHaveLength(1)
    await expect(first.current()).rejects.toMatchObject({ code: 'DISPOSED' })
  })

  test('share one run while it lasts', async () => {
    const sources = Array.from({ length: 20 }, () => execSource(exec, cluster, host))
    await Promise.all(sources.map((source) => source.current()))
    expect(runs).toHaveLength(1)
  })

  test('end a run with the last of them, and not before; the next one starts anew [SEC-R2403]', async () => {
    const signals: AbortSignal[] = []
    const slow: ExecSourceHost = {
      ...host,
      run: (_run, _plugins, signal) =>
        new Promise((_resolve, reject) => {
          if (signal) signals.push(signal)
          signal?.addEventListener('abort', () => reject(pluginFailure()))
        }),
    }
    const [first, second] = [execSource(exec, cluster, slow), execSource(exec, cluster, slow)]
    const waiting = [first.current(), second.current()]
    first.dispose()
    first.dispose()
    expect(signals.map(({ aborted }) => aborted)).toEqual([false])
    second.dispose()
    expect(signals.map(({ aborted }) => aborted)).toEqual([true])
    const third = execSource(exec, cluster, slow)
    const again = third.current()
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false])
    third.dispose()
    for (const each of [...waiting, again])
      await expect(each).rejects.toMatchObject({ code: 'DISPOSED' })
  })

  test('share nothing if they do not want to [CRED-C1]', async () => {
    const own: ExecSourceHost = { ...host, registry: 'none' }
    await execSource(exec, cluster, own).current()
    await execSource(exec, cluster, own).current()
    expect(runs).toHaveLength(2)
  })

  test('fetch anew after the registry was cleared, and tell who listens [CRED-C1]', async () => {
    const registry = new SourceRegistry()
    const source = execSource(exec, cluster, { ...host, registry })
    const seen: string[] = []
    source.onRotate((next) => seen.push(next.token?.reveal() ?? ''))
    await source.current()
    registry.clear()
    await source.current()
    expect(seen).toEqual(['token-2'])
    registry.dispose()
    await expect(source.current()).rejects.toMatchObject({ code: 'DISPOSED' })
  })

  test('hear of rotations only until they are disposed of', async () => {
    const [mine, other] = [execSource(exec, cluster, host), execSource(exec, cluster, host)]
    const heard: string[] = []
    mine.onRotate(() => heard.push('mine'))
    other.onRotate(() => heard.push('other'))
    const used = await other.current()
    mine.dispose()
    await other.renew(used, refusal401)
    expect(heard).toEqual(['other'])
  })

  test('are forgotten beyond a limit, the oldest first', async () => {
    const registry = new SourceRegistry(2)
    const use = (command: string) =>
      execSource({ ...exec, command }, cluster, { ...host, registry }).current()
    for (const command of ['a', 'b', 'a', 'c', 'a', 'b']) await use(command)
    expect(runs.map((run) => run.exec.command)).toEqual(['a', 'b', 'c', 'b'])
  })
})

describe('the key of a configuration [CRED-S14]', () => {
  const key = (changes: Partial<ExecConfig> = {}, at = cluster, by = plugins) =>
    execKey({ ...exec, ...changes }, at, by)

  test.each<[string, Partial<ExecConfig>]>([
    ['another command', { command: 'other' }],
    ['other arguments', { args: ['token', '-i (CLUSTER_ID)'] }],
    ['no arguments', { args: [] }],
    ['another value of a variable', { env: [{ name: 'PROFILE', value: new Secret('test') }] }],
    ['another variable', { env: [{ name: '__proto__', value: new Secret('prod') }] }],
    ['another version', { apiVersion: 'client.authentication.k8s.io/v1beta1' }],
    ['cluster info', { provideClusterInfo: true }],
    ['another mode', { interactiveMode: 'Always' }],
  ])('differs with %s', (_name, changes) => {
    expect(key(changes)).not.toBe(key())
  })

  test('has the cluster in it only if the plugin is told about it', () => {
    const other = { server: 'https://other' }
    const told = { provideClusterInfo: true }
    expect(key({}, other)).toBe(key())
    expect(key(told, other)).not.toBe(key(told))
    const extended = { ...cluster, extensions: new Map([['e', { __proto__: null, a: 1 }]]) }
    expect(key(told, extended)).not.toBe(key(told))
  })

  test('differs with the policy, the dialect and the environment of the host', () => {
    expect(key({}, cluster, { ...plugins })).toBe(key())
    for (const rules of [
      { policy: { policy: 'DenyAll' } },
      { inputDialect: 'seed' },
      { env: {} },
    ] satisfies Partial<PluginHost>[]) {
      expect(key({}, cluster, { ...plugins, ...rules })).not.toBe(key())
    }
  })

  test('does not show what it is made of', () => {
    expect(key()).toMatch(/^[A-Za-z0-9+/]{43}=$/)
  })
})

describe('a run', () => {
  let directory: string
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'exec-source-'))
  })
  afterEach(() => rm(directory, { recursive: true }))

  test('gets the cluster if it asks for it, with the authority as text', async () => {
    const ca = join(directory, 'ca.crt')
    await writeFile(ca, 'pem')
    const at = { ...cluster, certificateAuthority: ca, tlsServerName: 'kubernetes' }
    await execSource({ ...exec, provideClusterInfo: true }, at, host).current()
    await execSource(exec, at, host).current()
    expect(runs.map((run) => run.cluster)).toEqual([
      {
        server: 'https://a:6443',
        certificateAuthorityData: 'pem',
        tlsServerName: 'kubernetes',
      },
      undefined,
    ])
  })

  test('gets the refusal that made it necessary', async () => {
    const source = execSource(exec, cluster, host)
    await source.renew(await source.current(), refusal401)
    expect(runs.map((run) => run.refusal)).toEqual([undefined, refusal401])
  })
})

describe('what happens to plugins [CRED-C10]', () => {
  test('is told as events', async () => {
    const observer = new EventLog()
    const source = execSource(exec, cluster, { ...host, observer })
    const used = await source.current()
    clock.advance(5_000)
    await source.renew(used, refusal401)
    expect(observer.events).toEqual([
      { type: 'run-start', command: 'login' },
      { type: 'run-end', command: 'login', durationMs: 0, status: 'no_error', exitCode: 0 },
      { type: 'fetched' },
      { type: 'run-start', command: 'login' },
      { type: 'run-end', command: 'login', durationMs: 0, status: 'no_error', exitCode: 0 },
      { type: 'fetched' },
      { type: 'rotate', ageMs: 5_000, certificateChanged: false },
    ])
  })

  test('is told of a denial too, which is never a request without a credential [CRED-S16]', async () => {
    const observer = new EventLog()
    const denial = new CredentialError('POLICY_DENIED', 'may not run')
    const source = execSource(exec, cluster, {
      ...host,
      observer,
      run: () => Promise.reject(denial),
    })
    await expect(source.current()).rejects.toBe(denial)
    expect(observer.types()).toEqual(['run-start', 'denied', 'refresh-failed'])
  })

  test.each([
    ['NOT_FOUND', undefined, '1', 'plugin_not_found_error'],
    ['EXIT', 3, '3', 'plugin_execution_error'],
    ['SIGNAL', undefined, '-1', 'plugin_execution_error'],
    ['DECODE', undefined, '1', 'client_internal_error'],
  ] as const)('counts %s (%s) under the names of Kubernetes', async (...row) => {
    const [code, exitCode, label, status] = row
    const registry = new MetricsRegistry()
    const error = new CredentialError(code, 'x', exitCode === undefined ? {} : { exitCode })
    const observer = execMetrics(registry, clock)
    const source = execSource(exec, cluster, {
      ...host,
      observer,
      run: () => Promise.reject(error),
    })
    await expect(source.current()).rejects.toBe(error)
    expect(registry.expose()).toContain(
      `rest_client_exec_plugin_call_total{code="${label}",call_status="${status}"} 1\n`,
    )
  })

  test('measures certificates and counts what the policy says', async () => {
    const registry = new MetricsRegistry()
    const observer = execMetrics(registry, clock)
    expect(registry.expose()).toContain('rest_client_exec_plugin_ttl_seconds +Inf\n')
    const run = async () => {
      const { certificate } = await labCertificate({
        subject: named('jane'),
        notAfter: labNow + 3_600_000,
      })
      return { clientCertificate: { certPem: certificate.toString(), keyPem: new Secret('k') } }
    }
    const policy = { policy: 'AllowAll' } as const
    const allowed = { ...host, observer, run, plugins: { ...plugins, policy } }
    const source = execSource(exec, cluster, allowed)
    const used = await source.current()
    clock.advance(1_200_000)
    await source.renew(used, refusal401)
    const page = registry.expose()
    expect(page).toContain('rest_client_exec_plugin_ttl_seconds 2400\n')
    expect(page).toContain('rest_client_exec_plugin_policy_call_total{status="allowed"} 2\n')
    expect(page).toContain('rest_client_exec_plugin_certificate_rotation_age_bucket{le="600"} 0\n')
    expect(page).toContain('rest_client_exec_plugin_certificate_rotation_age_bucket{le="1800"} 1\n')
  })

  test('does not count a plugin that fails as a rotation', async () => {
    const observer = new EventLog()
    const run = () => Promise.reject(pluginFailure())
    await expect(
      execSource(exec, cluster, { ...host, observer, run }).current(),
    ).rejects.toMatchObject({ code: 'EXIT' })
    expect(observer.types()).toEqual(['run-start', 'run-end', 'refresh-failed'])
  })
})

import { once } from 'node:events'
import { chmod, chown, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { buildOnce } from '../build-once.ts'
import { openCluster } from '../support/cluster-client.ts'
import { eventually } from '../support/eventually.ts'
import {
  runSallyport,
  type SallyportProcess,
  startSallyport,
} from '../support/sallyport-process.ts'

let scratch: string
let running: SallyportProcess[] = []

beforeAll(async () => void (await buildOnce()), 120_000)
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'sallyport-up-'))
  running = []
})
afterEach(async () => {
  await Promise.all(running.map((server) => server.stop()))
  await rm(scratch, { recursive: true, force: true })
})

async function start(
  options: Parameters<typeof startSallyport>[0] = {},
): Promise<SallyportProcess> {
  const server = await startSallyport({ dataDirectory: join(scratch, 'data'), ...options })
  running.push(server)
  return server
}

test('up says where it serves and writes a private kubeconfig [GND-R2]', async () => {
  const server = await start()
  expect(server.server).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/)
  expect((await stat(server.kubeconfig)).mode & 0o777).toBe(0o600)
  const { view } = await openCluster(server.kubeconfig)
  const namespaces = await view.list(
    { group: '', version: 'v1', kind: 'Namespace', resource: 'namespaces', namespaced: false },
    {},
    AbortSignal.timeout(5_000),
  )
  expect(namespaces.items.map(({ metadata }) => metadata.name)).toContain('kube-system')
})

test('for a person it prints address, kubeconfig and three commands to try [GND-R2]', async () => {
  const dataDirectory = join(scratch, 'data')
  const ended = runSallyport(['up', '--data-dir', dataDirectory, '--secure-port', '0'], {
    onStdout: (text, child) => {
      if (text.includes('Ctrl-C stops it')) child.kill('SIGINT')
    },
  })
  const { code, stdout } = await ended
  expect(code).toBe(0)
  expect(stdout).toMatch(/serves the Kubernetes API at https:\/\/127\.0\.0\.1:\d+/)
  expect(stdout).toContain(join(dataDirectory, 'admin.kubeconfig'))
  expect(stdout.match(/^ {2}kubectl /gm)).toHaveLength(3)
  expect(stdout).toContain(`sallyport token create --kubeconfig ${dataDirectory}`)
})

describe('the tunnel [TUN-I2]', () => {
  test('up runs a tunnel server and an agent that connects to it over TLS', async () => {
    const server = await start()
    expect(server.tunnel).toMatch(/^127\.0\.0\.1:\d+$/)
    const connected = /^.*agent connected.*$/m
    const line = await eventually('an agent', () => connected.exec(server.stderr())?.[0])
    expect(line).toContain(hostname().toLowerCase())
    expect(await server.stop()).toBe(0)
    expect(server.stderr()).not.toMatch(/"level":"(?:warn|error)"/)
  })

  test('a person is told where agents connect and how, in one line', async () => {
    const { stdout } = await runSallyport(
      ['up', '--data-dir', join(scratch, 'data'), '--secure-port', '0'],
      {
        onStdout: (text, child) => {
          if (text.includes('Ctrl-C stops it')) child.kill('SIGINT')
        },
      },
    )
    const [line = ''] = /^Tunnel agents connect to 127\.0\.0\.1:\d+.*$/m.exec(stdout) ?? []
    expect(line).toContain('sallyport tunnel agent --proxy-server-host HOST')
    expect(line).toContain('--tunnel-agent-bind-address')
  })

  test('it can be left out', async () => {
    const server = await start({ args: ['--no-tunnel'] })
    expect(server.tunnel).toBeUndefined()
  })

  test('a port in use is said with the option that changes it', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as { port: number }
    const { code, stderr } = await runSallyport([
      'up',
      '--data-dir',
      join(scratch, 'data'),
      '--secure-port',
      '0',
      '--tunnel-agent-port',
      String(port),
    ])
    other.close()
    expect(code).toBe(1)
    expect(stderr).toContain(`cannot listen on 127.0.0.1:${port} for agents: the port is in use`)
  })
})

test('a second start finds state, keys and certificates again [GND-R3]', async () => {
  const configMap = {
    group: '',
    version: 'v1',
    kind: 'ConfigMap',
    resource: 'configmaps',
    namespaced: true,
  }
  const files = ['pki/ca.crt', 'pki/ca.key', 'pki/apiserver.crt', 'pki/sa.key']
  const read = () => Promise.all(files.map((file) => readFile(join(scratch, 'data', file), 'utf8')))
  const first = await start()
  const before = await openCluster(first.kubeconfig)
  const kept = {
    kind: 'ConfigMap',
    apiVersion: 'v1',
    metadata: { name: 'kept', namespace: 'default' },
    data: { a: 'b' },
  }
  const made = await before.view.write('create', kept, {}, AbortSignal.timeout(15_000))
  const keys = await read()
  expect(await first.stop()).toBe(0)
  const port = new URL(first.server).port
  const second = await start({ args: ['--secure-port', port] })
  expect(await read()).toEqual(keys)
  const after = await openCluster(second.kubeconfig)
  const found = await after.view.get(configMap, kept.metadata, AbortSignal.timeout(15_000))
  expect(found).toEqual(made)
}, 60_000)

test('a second start while the first runs is refused with a sentence [GND-R4]', async () => {
  const first = await start()
  const second = await runSallyport([
    'up',
    '--data-dir',
    join(scratch, 'data'),
    '--secure-port',
    '0',
    '--output',
    'json',
  ])
  expect(second.code).toBe(1)
  expect(second.stderr).toContain(`is in use by process ${first.process.pid}`)
  expect(JSON.parse(second.stdout)).toMatchObject({ error: { code: 'DATA_DIR_IN_USE' } })
})

describe('ending [GND-R5]', () => {
  test.each(['SIGINT', 'SIGTERM'] as const)('%s drains and exits 0', async (signal) => {
    const server = await start()
    server.process.kill(signal)
    const [code] = await once(server.process, 'exit')
    expect(code).toBe(0)
  })

  test('a second signal ends at once although a delay was asked for', async () => {
    const server = await start({
      args: ['--shutdown-delay-duration', '1h', '--shutdown-grace-period', '1h'],
    })
    server.process.kill('SIGINT')
    const stillThere = await Promise.race([
      once(server.process, 'exit').then(() => 'gone'),
      new Promise((resolve) => setTimeout(() => resolve('draining'), 300)),
    ])
    expect(stillThere).toBe('draining')
    server.process.kill('SIGINT')
    const [code] = await once(server.process, 'exit')
    expect(code).toBe(0)
  })
})

describe('what cannot work is said and changes nothing [GND-R30, GND-R93]', () => {
  test('a port in use', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as { port: number }
    const { code, stderr } = await runSallyport([
      'up',
      '--data-dir',
      join(scratch, 'data'),
      '--secure-port',
      String(port),
    ])
    other.close()
    expect(code).toBe(1)
    expect(stderr).toContain(`cannot listen on 127.0.0.1:${port}: the port is in use`)
    expect(stderr).not.toContain('    at ')
  })

  test('a data directory that is a file', async () => {
    await writeFile(join(scratch, 'file'), '')
    const { code, stderr } = await runSallyport(['up', '--data-dir', join(scratch, 'file')])
    expect(code).toBe(1)
    expect(stderr).toMatch(/data directory|not a directory/)
  })

  test('a data directory of a newer version', async () => {
    await mkdir(join(scratch, 'data'))
    await writeFile(join(scratch, 'data', 'format-version'), '99\n')
    const { code, stderr } = await runSallyport(['up', '--data-dir', join(scratch, 'data')])
    expect(code).toBe(1)
    expect(stderr).toContain('newer Sallyport')
  })

  // Root may write everywhere, so as root the command runs as somebody else.
  const somebody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}

  test('a data directory that cannot be written', async () => {
    const directory = join(scratch, 'data')
    await mkdir(directory)
    if (somebody.uid !== undefined) await chown(directory, somebody.uid, somebody.gid)
    await chmod(directory, 0o500)
    await chmod(scratch, 0o755)
    const { code, stderr } = await runSallyport(['up', '--data-dir', directory], somebody)
    expect(code).toBe(1)
    expect(stderr).toContain(`${directory} is not writable`)
  })

  // Only root can give a directory to another user.
  test.skipIf(somebody.uid === undefined)('a data directory of another user', async () => {
    const directory = join(scratch, 'data')
    await mkdir(directory)
    await chown(directory, 65_533, 65_533)
    await chmod(directory, 0o777)
    await chmod(scratch, 0o755)
    const { code, stderr } = await runSallyport(['up', '--data-dir', directory], somebody)
    expect(code).toBe(1)
    expect(stderr).toContain('belongs to another user')
  })

  test('a key that does not fit its certificate', async () => {
    await (await start()).stop()
    await writeFile(join(scratch, 'data', 'pki', 'ca.key'), 'garbage')
    const { code, stderr } = await runSallyport([
      'up',
      '--data-dir',
      join(scratch, 'data'),
      '--secure-port',
      '0',
    ])
    expect(code).toBe(1)
    expect(stderr).toContain('ca.key')
    expect(await readFile(join(scratch, 'data', 'pki', 'ca.key'), 'utf8')).toBe('garbage')
  })
})

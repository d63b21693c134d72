import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mintDiscoveryJwt, parseBootstrapToken } from '../../src/bootstrap/index.ts'
import { spkiPin } from '../../src/pki/index.ts'
import { eventually } from '../support/eventually.ts'
import { type CommandOutcome, runInProcess } from '../support/in-process-command.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'
import { runSallyport } from '../support/sallyport-process.ts'

const infoPath = '/api/v1/namespaces/kube-public/configmaps/cluster-info'
const agreed = 'k3pt0x.9f2mx7q1w4vz8r5t'

let scratch = ''
let server: InProcessServer
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'sallyport-tokens-'))
  server = await startInProcess()
})
afterAll(async () => {
  await server.close()
  await rm(scratch, { recursive: true, force: true })
})

const run = (args: readonly string[], env = {}): Promise<CommandOutcome> =>
  runInProcess(['token', ...args, '--data-dir', server.dataDirectory], { env })

interface Shown {
  readonly id: string
  readonly token: string
  readonly join: string
  readonly kubeadmJoin: string
  readonly [field: string]: unknown
}

async function create(...args: readonly string[]): Promise<Shown> {
  const { code, stdout, stderr } = await run(['create', ...args, '--output', 'json'])
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

async function listed(id: string): Promise<Shown | undefined> {
  const { stdout } = await run(['list', '--output', 'json'])
  return (JSON.parse(stdout) as { tokens: Shown[] }).tokens.find((each) => each.id === id)
}

async function write(text: string): Promise<string> {
  const path = join(scratch, `${Math.random()}`)
  await writeFile(path, text)
  return path
}

describe('token create', () => {
  test('[DISC-S4] prints the whole line for us and for kubeadm, with the pin of the CA', async () => {
    const { token, join: line, kubeadmJoin } = await create()
    const pin = spkiPin(server.serving.pki.clusterCa.certificate)
    const rest = `join 127.0.0.1:${server.port} --token ${token} --discovery-token-ca-cert-hash ${pin}`
    expect([line, kubeadmJoin]).toEqual([`sallyport ${rest}`, `kubeadm ${rest}`])
    const { stdout } = await run(['create'])
    expect(stdout).toMatch(
      /^token [a-z0-9]{6}\.[a-z0-9]{16}: it expires in (24h|23h59m), at 2.*Z\n/,
    )
    expect(stdout).toMatch(/\n {2}sallyport join 127.*\nor by\n {2}kubeadm join 127/)
    const only = await run(['create', '--print-join-command', 'kubeadm'])
    expect(only.stdout).toMatch(/^kubeadm join 127\S+ --token \S+ --discovery\S+ sha256:\S+\n$/)
  })

  test('[DISC-S4, DISC-R24] makes a token that signs and authenticates', async () => {
    const { token, id } = await create()
    await eventually('known', async () => {
      const jwt = mintDiscoveryJwt(parseBootstrapToken(token), Date.now())
      return (await server.as({ token: jwt }).get(infoPath)).headers['x-kubernetes-jws']
    })
    expect((await server.as({ token }).get(infoPath)).status).toBe(200)
    await eventually('signed', async () =>
      (await server.as({}).get(infoPath)).text.includes(`jws-kubeconfig-${id}`),
    )
  })

  test('[DISC-S4, DISC-R23] with everything that can be said of a token', async () => {
    const made = await create(
      '--ttl=90m',
      '--usages=authentication',
      '--description=for the lab',
      '--max-uses=3',
      '--node-name=lab-1',
      '--secret-length=40',
      '--groups=system:bootstrappers:lab',
    )
    expect(made.token).toMatch(/^[a-z0-9]{6}\.[a-z0-9]{40}$/)
    expect([made.join, made.kubeadmJoin]).toEqual([undefined, undefined])
    expect(await listed(made.id)).toMatchObject({
      usages: ['authentication'],
      description: 'for the lab',
      maxUses: 3,
      usesLeft: 3,
      nodeName: 'lab-1',
      groups: ['system:bootstrappers:lab'],
      secondsLeft: expect.closeTo(5_400, -2),
    })
    const forever = await create('--ttl', '0')
    expect(await listed(forever.id)).not.toHaveProperty('expires')
  })

  test.each([
    ['a file', async () => [['--token-file', await write(`${agreed}\n`)], {}] as const],
    ['the environment', async () => [[], { SALLYPORT_TOKEN: agreed }] as const],
    ['the command line', async () => [['--token', agreed], {}] as const],
  ])('[DISC-S4] takes a token that was agreed on from %s, once', async (_name, given) => {
    const [args, env] = await given()
    const first = await run(['create', ...args], env)
    expect([first.code, first.stderr]).toEqual([0, ''])
    const again = await run(['create', ...args], env)
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('there is a token')])
    expect((await run(['delete', agreed.slice(0, 6)])).code).toBe(0)
  })

  test('[DISC-S4] takes it from the standard input', async () => {
    const args = ['token', 'create', '--token-file', '-', '--data-dir', server.dataDirectory]
    const { code, stdout, stderr } = await runSallyport(args, { input: `${agreed}\n` })
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain(`token ${agreed}: it expires in`)
    expect((await run(['delete', agreed])).code).toBe(0)
    // It may be the first to need the built program.
  }, 120_000)

  test('[DISC-S4] warns of a token that is easy to guess, and makes it', async () => {
    const { code, stderr } = await run(['create', '--token', 'weakid.0000000000000000'])
    expect([code, stderr]).toEqual([0, expect.stringContaining('easier to guess')])
    expect(await listed('weakid')).toBeDefined()
  })

  test.each([
    ['a token with a capital letter', ['--token', 'ABCDEF.0123456789abcdef'], 1, 'small letters'],
    ['a group of others', ['--groups', 'system:masters'], 2, 'system:bootstrappers:<name>'],
    ['a name that no node has', ['--node-name', 'Not A Node'], 2, 'the name of a node'],
    ['a life longer than that of a time', ['--ttl', '99999999h'], 2, '--ttl must be from 0s to'],
    ['two tokens', ['--token', agreed, '--token-file', 'x'], 2, 'exclude each other'],
    [
      "kubeadm's line for a long secret",
      ['--secret-length', '20', '--print-join-command', 'kubeadm'],
      2,
      'a secret of 16 letters',
    ],
  ])('[DISC-S4] refuses %s and makes nothing', async (_name, args, code, words) => {
    const before = (await run(['list', '--output', 'json'])).stdout.match(/"id"/g)?.length
    const outcome = await run(['create', ...args])
    expect([outcome.code, outcome.stderr]).toEqual([code, expect.stringContaining(words)])
    expect(outcome.stderr).not.toMatch(/ABCDEF|0123456789abcdef|9f2mx7q1w4vz8r5t/)
    const after = (await run(['list', '--output', 'json'])).stdout.match(/"id"/g)?.length
    expect(after).toBe(before)
  })
})

describe('token list, show and delete', () => {
  test('[DISC-S4] no secret is shown unless it is asked for', async () => {
    const { id, token, join: line } = await create('--ttl', '2h')
    const secret = token.slice(7)
    for (const output of ['text', 'json']) {
      for (const command of [['list'], ['show', id]]) {
        const { code, stdout, stderr } = await run([...command, '--output', output])
        expect([code, stdout]).toEqual([0, expect.stringContaining(id)])
        expect(stdout + stderr).not.toContain(secret)
      }
      const shown = await run(['show', id, '--show-secret', '--output', output])
      expect(shown.stdout).toContain(token)
      expect(shown.stdout).toContain(line)
    }
  })

  test('[DISC-S4] the list says how long each is good and for how many', async () => {
    const { id } = await create('--ttl', '2h', '--max-uses', '5')
    const { stdout } = await run(['list'])
    expect(stdout).toMatch(/^ID +LIFE LEFT +USAGES +USES LEFT +NODE +GROUPS +DESCRIPTION\n/)
    const row = new RegExp(`^${id} +1h59m +authentication,signing +5 +any +system:bootstr`, 'm')
    expect(stdout).toMatch(row)
  })

  test('[DISC-S4] what is deleted is gone, and is not found again', async () => {
    const { id, token } = await create()
    expect((await run(['delete', token])).stdout).toBe(`token ${id} is deleted\n`)
    await eventually(
      'refused',
      async () => (await server.as({ token }).get(infoPath)).status === 401,
    )
    for (const command of ['delete', 'show']) {
      const { code, stderr } = await run([command, id])
      expect([code, stderr]).toEqual([1, expect.stringContaining(`there is no token ${id}`)])
    }
    const wrong = await run(['delete', 'nonsense'])
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('not the id')])
  })

  test('[DISC-S4] any cluster is reached by its kubeconfig', async () => {
    const args = ['token', 'list', '--kubeconfig', server.serving.adminKubeconfig]
    expect(await runInProcess(args)).toMatchObject({ code: 0, stderr: '' })
  })
})

describe('a token that is known before there is a cluster', () => {
  test.each([
    ['a file', async () => ['--bootstrap-token-file', await write(`${agreed}\n`)]],
    ['an option, as the environment gives it', async () => ['--bootstrap-token', agreed]],
  ])('[DISC-R20] is good from the first start on, from %s', async (_name, flags) => {
    const early = await startInProcess({ flags: await flags() })
    try {
      const jwt = mintDiscoveryJwt(parseBootstrapToken(agreed), Date.now())
      expect((await early.as({ token: jwt }).get(infoPath)).status).toBe(200)
      expect(early.log).not.toContain(agreed.slice(7))
    } finally {
      await early.close()
    }
  })

  test('[DISC-R20] does not come back at the next start when it was deleted', async () => {
    const flags = ['--bootstrap-token', agreed, '--bootstrap-token-ttl', '0']
    const dataDirectory = await mkdtemp(join(scratch, 'data-'))
    const first = await startInProcess({ flags, dataDirectory })
    const deletion = await runInProcess(['token', 'delete', 'k3pt0x', '--data-dir', dataDirectory])
    await first.close()
    const second = await startInProcess({ flags, dataDirectory })
    const { status } = await second.as({ token: agreed }).get(infoPath)
    await second.close()
    expect([deletion.code, status]).toEqual([0, 401])
  })

  test('[DISC-R20] stops the start if it is none, without repeating it', async () => {
    const path = await write('my secret words')
    const start = startInProcess({ flags: ['--bootstrap-token-file', path] })
    await expect(start).rejects.toThrow(`${path}: the token is not of the form id.secret`)
    await expect(start).rejects.not.toThrow('secret words')
  })
})

import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { createKubeClient, transportFromKubeconfig } from '../../src/client/index.ts'
import { parseKubeconfig, resolveContext } from '../../src/kubeconfig/index.ts'
import { spkiPin } from '../../src/pki/index.ts'
import { eventually } from '../support/eventually.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'
import { createToken, type JoinEnd, scratch, startJoin } from './join-lab.suite.ts'

// Some join more than once, and the machine may have other things to do.
vi.setConfig({ testTimeout: 60_000 })

let server: InProcessServer
let directory: Awaited<ReturnType<typeof scratch>>
beforeAll(async () => {
  server = await startInProcess()
})
afterAll(() => server.close())
beforeEach(async () => {
  directory = await scratch()
})
afterEach(() => directory.remove())

const address = (): string => `127.0.0.1:${server.port}`
const out = (name = 'n1'): string => join(directory.path, `${name}.kubeconfig`)
const joined = (args: readonly string[], env: Record<string, string> = {}): Promise<JoinEnd> =>
  startJoin(['--timeout', '60s', '--approval-timeout', '60s', ...args], env).ended
const good = { code: 0 }

/** Whom the cluster sees behind a kubeconfig. */
async function whoIs(path: string): Promise<unknown> {
  const config = await parseKubeconfig(await readFile(path, 'utf8'), path)
  const transport = await transportFromKubeconfig(resolveContext(config))
  const client = createKubeClient({ transport })
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
  const request = {
    method: 'POST',
    path: '/apis/authentication.k8s.io/v1/selfsubjectreviews',
    body: review,
  }
  const { body } = await client.request(request, new AbortController().signal)
  transport.destroy()
  return (JSON.parse(body.toString()) as { status: unknown }).status
}

const approve = async (name: string, type: 'Approved' | 'Denied' = 'Approved'): Promise<void> => {
  const path = `/apis/certificates.k8s.io/v1/certificatesigningrequests/${name}`
  const admin = await server.admin()
  const { object } = await admin.get(path)
  const condition = { type, status: 'True', reason: 'Test', message: 'by the test' }
  const body = { ...object, status: { conditions: [condition] } }
  const answer = await admin.request(`${path}/approval`, { method: 'PUT', body })
  expect(answer.status).toBe(200)
}

describe('an address and a token', () => {
  test('make a node: one kubeconfig with the CA in it, which works [DISC-R1, DISC-R3, DISC-R22, DISC-R24, DISC-C4]', async () => {
    const token = await createToken(server)
    const said = await joined([`--token=${token}`, address(), '--node-name', 'n1', '--out', out()])
    expect(said).toMatchObject(good)
    expect(said.stdout).toContain(`${out()} is system:node:n1 at https://${address()} until `)
    expect(await whoIs(out())).toMatchObject({
      userInfo: {
        username: 'system:node:n1',
        groups: expect.arrayContaining(['system:nodes']) as string[],
      },
    })
    const config = await parseKubeconfig(await readFile(out(), 'utf8'), out())
    const [cluster] = config.clusters.values()
    expect(cluster?.certificateAuthorityData).toBe(server.serving.pki.clusterCa.bundlePem)
  })

  test('say step by step what is done', async () => {
    const token = await createToken(server)
    const { stderr } = await joined([
      address(),
      '--token',
      token,
      '--node-name',
      'n2',
      '--out',
      out(),
    ])
    expect(stderr).toMatch(
      /^Asking https:\S+ for the cluster\n {2}its answer is signed with the token\n {2}it proved .*\nAsked for a certificate: node-csr-[0-9a-f]{32}\n/,
    )
  })

  test('leave one file that only its owner can read [DISC-C10]', async () => {
    const token = await createToken(server)
    await joined([address(), '--token', token, '--node-name', 'n3', '--out', out()])
    expect((await stat(out())).mode & 0o777).toBe(0o600)
    expect(await readdir(directory.path)).toEqual(['n1.kubeconfig'])
  })

  test('tell a program all there is to know', async () => {
    const token = await createToken(server)
    const { stdout } = await joined([
      address(),
      '--token',
      token,
      '--node-name',
      'n4',
      '--out',
      out(),
      '--output',
      'json',
    ])
    expect(JSON.parse(stdout)).toEqual({
      did: 'joined',
      kubeconfig: out(),
      server: `https://${address()}`,
      advertised: `https://${address()}`,
      asked: `https://${address()}`,
      proofs: ['signed-answer', 'second-fetch'],
      pins: [spkiPin(server.serving.pki.clusterCa.certificate)],
      warnings: [],
      username: 'system:node:n4',
      expires: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      request: expect.stringMatching(/^node-csr-/),
    })
  })

  test('also by a document of theirs alone [DISC-C4]', async () => {
    const token = await createToken(server)
    const said = await joined([address(), '--token', token, '--discovery-only', '--out', out()])
    expect(said).toMatchObject(good)
    const config = await parseKubeconfig(await readFile(out(), 'utf8'), out())
    expect([config.users.size, config.currentContext]).toEqual([0, '127.0.0.1'])
    const printed = await joined([address(), '--token', token, '--discovery-only', '--out', '-'])
    expect(printed.stdout).toBe(await readFile(out(), 'utf8'))
  })

  test('with pins, one by one or in one word with the token [DISC-C1, DISC-C2]', async () => {
    const token = await createToken(server)
    const pin = spkiPin(server.serving.pki.clusterCa.certificate)
    const only = ['--discovery-only', '--out', '-']
    const byFlag = await joined([
      address(),
      '--discovery-token',
      token,
      '--discovery-token-ca-cert-hash',
      pin,
      ...only,
    ])
    const inOne = await joined([address(), '--token', `${token}@${pin}`, ...only])
    for (const said of [byFlag, inOne])
      expect(said.stderr).toContain('every root has one of the pins')
    const wrong = `sha256:${'0'.repeat(64)}`
    const refused = await joined([
      address(),
      '--token',
      token,
      '--discovery-token-ca-cert-hash',
      wrong,
      ...only,
      '--output',
      'json',
    ])
    expect(refused.code).toBe(1)
    expect(JSON.parse(refused.stdout)).toMatchObject({ error: { code: 'PIN_MISMATCH' } })
    expect(refused.stderr).toContain(pin)
  })
})

describe('[DISC-C3] the token comes', () => {
  const only = ['--discovery-only', '--out', '-']
  test('from a file; one that others can read is warned of', async () => {
    const file = join(directory.path, 'token')
    await writeFile(file, `${await createToken(server)}\n`, { mode: 0o600 })
    const said = await joined([address(), '--token-file', file, ...only])
    expect(said).toMatchObject(good)
    expect(said.stderr).not.toContain('warning')
    await chmod(file, 0o644)
    const again = await joined([address(), '--token-file', file, ...only])
    expect(again.stderr).toContain(`warning: others may read ${file}`)
  })

  test('from the environment', async () => {
    const env = { SALLYPORT_TOKEN: await createToken(server) }
    expect(await joined([address(), ...only], env)).toMatchObject(good)
  })

  test.each([
    ['is not there', '/nonexistent/token', 'there is no such file'],
    ['is empty', '/dev/null', 'there is no token'],
  ])('from a file that %s', async (_name, file, said) => {
    const { code, stderr } = await joined([address(), '--token-file', file, ...only])
    expect([code, stderr]).toEqual([1, expect.stringContaining(said)])
  })
})

describe('a person', () => {
  test('waits for approval and is told how it is given [DISC-C4]', async () => {
    const token = await createToken(server)
    const file = out('jane')
    const run = startJoin([
      address(),
      '--token',
      token,
      '--as',
      'user',
      'jane',
      '--group',
      'devs',
      '--out',
      file,
    ])
    await run.says('kubectl certificate approve user-csr-')
    const { items } = (
      await (await server.admin()).get('/apis/certificates.k8s.io/v1/certificatesigningrequests')
    ).object as unknown as { items: { metadata: { name: string } }[] }
    const request = items.find(({ metadata }) => metadata.name.startsWith('user-csr-'))
    await approve(request?.metadata.name ?? '')
    expect(await run.ended).toMatchObject(good)
    expect(await whoIs(file)).toMatchObject({
      userInfo: { username: 'jane', groups: expect.arrayContaining(['devs']) as string[] },
    })
  })

  test('a machine that runs workloads joins in the same way [ISS-W6]', async () => {
    const token = await createToken(server)
    const file = out('laptop')
    const args = [address(), '--token', token, '--as', 'machine', 'laptop', '--out', file]
    const { stderr } = await startJoin([...args, '--approval-timeout', '0']).ended
    const [, request = ''] = /certificate approve (machine-csr-\w+)`/.exec(stderr) ?? []
    await approve(request)
    expect(await joined(args)).toMatchObject(good)
    expect(await whoIs(file)).toMatchObject({
      userInfo: {
        username: 'system:sallyport:machine:laptop',
        groups: ['system:sallyport:machines', 'system:authenticated'],
      },
    })
  })

  test('need not wait: the next run goes on where the first was', async () => {
    const token = await createToken(server)
    const args = [address(), '--token', token, '--as', 'user', 'june', '--out', out('june')]
    const first = await startJoin([...args, '--approval-timeout', '0', '--output', 'json']).ended
    expect(JSON.parse(first.stdout)).toMatchObject({ error: { code: 'APPROVAL_PENDING' } })
    const [, request = ''] = /kubectl certificate approve (user-csr-\w+)`/.exec(first.stderr) ?? []
    expect(await readdir(directory.path)).toEqual(['.june.kubeconfig.pending-key'])
    expect((await stat(join(directory.path, '.june.kubeconfig.pending-key'))).mode & 0o777).toBe(
      0o600,
    )
    await approve(request)
    const second = await joined(args)
    expect(second).toMatchObject(good)
    expect(second.stderr).toContain(`Found the request of an earlier run: ${request}`)
    expect(await readdir(directory.path)).toEqual(['june.kubeconfig'])
  })

  test('who is denied is told by whom and why, and nothing is left but the key', async () => {
    const token = await createToken(server)
    const run = startJoin([
      address(),
      '--token',
      token,
      '--as',
      'user',
      'jack',
      '--out',
      out('jack'),
    ])
    await run.says('certificate approve')
    const key = await eventually('asked', async () => {
      const list = (
        await (await server.admin()).get('/apis/certificates.k8s.io/v1/certificatesigningrequests')
      ).object as unknown as {
        items: { metadata: { name: string }; status?: { conditions?: unknown[] } }[]
      }
      return list.items.find(
        ({ metadata, status }) => metadata.name.startsWith('user-csr-') && !status?.conditions,
      )
    })
    await approve(key.metadata.name, 'Denied')
    const { code, stderr } = await run.ended
    expect([code, stderr]).toEqual([1, expect.stringContaining('was denied: Test: by the test')])
    expect(await readdir(directory.path)).toEqual(['.jack.kubeconfig.pending-key'])
  })
})

describe('a second run', () => {
  test('says what is there and does nothing', async () => {
    const token = await createToken(server)
    const args = [address(), '--token', token, '--node-name', 'n5', '--out', out()]
    await joined(args)
    const before = await readFile(out(), 'utf8')
    const again = await joined([...args, '--output', 'json'])
    expect(JSON.parse(again.stdout)).toMatchObject({ did: 'present', username: 'system:node:n5' })
    expect(await readFile(out(), 'utf8')).toBe(before)
    // A new key, so the name has to be moved to it.
    const refused = await joined([...args, '--force'])
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining('sallyport token create --replace n5'),
    ])
    const replacing = { boundNodeName: 'n5', maxUses: 1, replaceNodeName: 'n5' }
    args[2] = await createToken(server, replacing)
    expect(await joined([...args, '--force'])).toMatchObject(good)
    expect(await readFile(out(), 'utf8')).not.toBe(before)
  })

  test('needs neither address nor token to say so', async () => {
    const token = await createToken(server)
    await joined([address(), '--token', token, '--node-name', 'n6', '--out', out()])
    const said = await joined(['--node-name', 'n6', '--out', out()])
    expect([said.code, said.stdout]).toEqual([0, expect.stringContaining('nothing to do')])
  })

  test('does not write over the file of somebody else [DISC-C10]', async () => {
    const token = await createToken(server)
    await writeFile(out(), 'mine')
    for (const more of [['--node-name', 'n7'], ['--discovery-only']]) {
      const args = [address(), '--token', token, '--out', out(), ...more, '--output', 'json']
      const said = await joined(args)
      expect([said.code, JSON.parse(said.stdout)]).toMatchObject([
        1,
        { error: { code: 'FILE_EXISTS' } },
      ])
    }
    expect(await readFile(out(), 'utf8')).toBe('mine')
  })
})

describe('a document finds the cluster', () => {
  const document = async (): Promise<string> => {
    const path = join(directory.path, 'cluster.yaml')
    const admin = await server.admin()
    const { object } = await admin.get('/api/v1/namespaces/kube-public/configmaps/cluster-info')
    await writeFile(path, (object as unknown as { data: { kubeconfig: string } }).data.kubeconfig)
    return path
  }

  test.each(['--cluster-info-file', '--discovery-file'])(
    'by %s, and the token gets the certificate [DISC-R12, DISC-R14, DISC-C2]',
    async (flag) => {
      const token = await createToken(server, { usages: new Set(['authentication']) })
      const said = await joined([
        flag,
        await document(),
        '--tls-bootstrap-token',
        token,
        '--node-name',
        `by-${flag.slice(2)}`,
        '--out',
        out(),
      ])
      expect(said).toMatchObject(good)
    },
  )

  test('and the pins that come with the token hold for it as well [DISC-C1, DISC-R14]', async () => {
    const token = await createToken(server)
    const args = ['--cluster-info-file', await document(), '--node-name', 'pinned', '--out', out()]
    const wrong = `${token}@sha256:${'0'.repeat(64)}`
    const refused = await joined([...args, '--token', wrong, '--output', 'json'])
    expect([refused.code, JSON.parse(refused.stdout)]).toMatchObject([
      1,
      { error: { code: 'PIN_MISMATCH' } },
    ])
    const pin = spkiPin(server.serving.pki.clusterCa.certificate)
    expect(await joined([...args, '--token', `${token}@${pin}`])).toMatchObject(good)
  })
})

test('a captured request is good for nothing else [DISC-S9, DISC-T3]', async () => {
  const { mintDiscoveryJwt, parseBootstrapToken } = await import('../../src/bootstrap/index.ts')
  const token = parseBootstrapToken(await createToken(server))
  const thief = server.as({ token: mintDiscoveryJwt(token, Date.now()) })
  const requests = [
    ['POST', '/apis/certificates.k8s.io/v1/certificatesigningrequests'],
    ['GET', '/apis/certificates.k8s.io/v1/certificatesigningrequests'],
    ['GET', '/api/v1/namespaces/kube-system/configmaps/kubeadm-config'],
    ['GET', '/api/v1/namespaces/kube-system/secrets'],
    ['GET', '/api/v1/namespaces/kube-public/configmaps'],
    ['GET', '/api/v1/namespaces/kube-public/configmaps?watch=true'],
    ['PUT', '/api/v1/namespaces/kube-public/configmaps/cluster-info'],
    ['GET', '/api/v1/nodes/n1'],
    ['POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews'],
  ]
  for (const [method = '', path = ''] of requests)
    expect([path, (await thief.request(path, { method })).status]).toEqual([path, 403])
})

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isRecord } from '../../src/core/index.ts'
import { runInProcess } from '../support/in-process-command.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'
import { createMachine } from '../support/running-workload.ts'

const pods = '/api/v1/namespaces/default/pods'
let server: InProcessServer
let scratch: string

const machine = (name: string, ...more: string[]): Promise<string> =>
  createMachine({ server, directory: scratch }, name, ...more)

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'sallyport-machines-'))
  server = await startInProcess()
}, 120_000)
afterAll(async () => {
  await server?.close()
  await rm(scratch, { recursive: true, force: true })
})

describe('only the identity of a machine [ISS-W6]', () => {
  const pod = (name: string, mark: string) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', labels: { 'sallyport.dev/workload': mark } },
    spec: {
      nodeName: mark,
      serviceAccountName: 'default',
      containers: [{ name: 'c', image: 'i', ports: [{ containerPort: 80 }] }],
    },
  })
  const groups = ['system:sallyport:machines']
  const as = async (name: string, ...more: string[]) =>
    server.as(await server.issue(`system:sallyport:machine:${name}`, [...groups, ...more]))
  const statusAt = (ip: string) => ({ phase: 'Running', podIP: ip, podIPs: [{ ip }] })

  beforeAll(async () => {
    await machine('a')
    await machine('b')
    await (await as('a')).post(pods, pod('of-a', 'a'))
  })

  test('writes the mark, not an administrator', async () => {
    const admin = await server.admin()
    expect(await admin.post(pods, pod('forged', 'a'))).toMatchObject({ status: 403 })
    await admin.post(pods, { ...pod('plain', 'a'), metadata: { name: 'plain' } })
    const patch = await admin.request(`${pods}/plain`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/merge-patch+json' },
      body: { metadata: { labels: { 'sallyport.dev/workload': 'a' } } },
    })
    expect(patch.status).toBe(403)
    expect(patch.object['message']).toContain('written by `workload run` only')
  })

  test('writes what carries it: no other machine, no person', async () => {
    const { object } = await (await server.admin()).get(`${pods}/of-a`)
    const moved = { ...object, status: statusAt('10.9.8.7') }
    const b = await as('b')
    expect((await b.put(`${pods}/of-a/status`, moved)).status).toBe(403)
    expect((await b.delete(`${pods}/of-a`)).status).toBe(403)
    expect((await (await server.admin()).put(`${pods}/of-a/status`, moved)).status).toBe(403)
    expect((await (await as('a')).put(`${pods}/of-a/status`, moved)).status).toBe(200)
  })

  test('sees its Pods, and gets tokens that are bound to them', async () => {
    const [a, b] = [await as('a'), await as('b')]
    expect((await a.get(`${pods}/of-a`)).status).toBe(200)
    expect((await b.get(`${pods}/of-a`)).status).toBe(403)
    const { uid } = (await a.get(`${pods}/of-a`)).object.metadata
    const bound = { apiVersion: 'v1', kind: 'Pod', name: 'of-a', uid }
    const ask = (caller: typeof a, spec: object) =>
      caller.post('/api/v1/namespaces/default/serviceaccounts/default/token', {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: { audiences: [], ...spec },
      })
    expect((await ask(a, { boundObjectRef: bound })).object).toMatchObject({
      status: { token: expect.any(String) },
    })
    expect((await ask(a, {})).status).toBe(403)
    expect((await ask(b, { boundObjectRef: bound })).status).toBe(403)
  })

  test('may be on loopback, and only where that is the server’s', async () => {
    const put = async (caller: Awaited<ReturnType<typeof as>>) => {
      const { object } = await (await server.admin()).get(`${pods}/of-a`)
      return caller.put(`${pods}/of-a/status`, { ...object, status: statusAt('127.0.0.1') })
    }
    expect((await put(await as('a'))).status).toBe(403)
    expect((await put(await as('a', 'system:sallyport:loopback-machines'))).status).toBe(200)
  })

  test('has rights in the namespaces that it was given, and in no others', async () => {
    const a = await as('a')
    const elsewhere = '/api/v1/namespaces/kube-system/pods'
    const moved = pod('x', 'a')
    expect(
      (
        await a.post(elsewhere, {
          ...moved,
          metadata: { ...moved.metadata, namespace: 'kube-system' },
        })
      ).status,
    ).toBe(403)
    expect((await a.get('/api/v1/namespaces/default/secrets')).status).toBe(403)
    expect((await a.get(pods)).status).toBe(403)
  })

  test('comes from `user create --machine`, on this machine with loopback', async () => {
    const local = await machine('c')
    const remote = await machine('d', '--server', 'https://api.example.com:6443')
    const words = ['user', 'list', '--output', 'json', '--data-dir', server.dataDirectory]
    const { stdout } = await runInProcess(words)
    const listed: unknown = JSON.parse(stdout)
    const users = isRecord(listed) && Array.isArray(listed['users']) ? listed['users'] : []
    const groupsOf = (name: string) =>
      users.find((user) => user.name === `system:sallyport:machine:${name}`)?.groups
    expect(groupsOf('c')).toEqual([...groups, 'system:sallyport:loopback-machines'])
    expect(groupsOf('d')).toEqual(groups)
    expect([local, remote].every((file) => file.endsWith('.kubeconfig'))).toBe(true)
  })

  test('is revoked by its own name, and not taken for a person', async () => {
    await machine('e')
    const revoke = (...words: string[]) =>
      runInProcess(['user', 'revoke', ...words, '--data-dir', server.dataDirectory])
    const person = await revoke('e')
    expect([person.code, person.stdout]).toEqual([0, 'user e is revoked\n'])
    expect(person.stderr).toContain('to revoke that one, add --machine')
    const revoked = await revoke('e', '--machine')
    expect([revoked.stdout, revoked.stderr]).toEqual([
      'user system:sallyport:machine:e is revoked\n',
      '',
    ])
    expect((await revoke('--serial', 'AB', '--machine')).code).toBe(2)
  })

  test.each([
    ['a person’s group', ['jane', '--machine', '--group', 'devs'], 2, '--group does not go'],
    ['a namespace of a person', ['jane', '--namespace', 'x'], 2, '--namespace goes with --machine'],
    ['a name that is none', ['Bad_Name', '--machine'], 2, 'is not a valid machine name'],
    [
      'a namespace that is none',
      ['m', '--machine', '--namespace', 'nope'],
      1,
      'namespace nope not found',
    ],
  ])('is not made with %s', async (_what, words, code, says) => {
    const place = ['--out', join(scratch, 'never'), '--data-dir', server.dataDirectory]
    const made = await runInProcess(['user', 'create', ...words, ...place])
    expect([made.code, made.stderr]).toEqual([code, expect.stringContaining(says)])
  })
})

import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Answer, Call, HttpsCaller } from '../support/https-caller.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

interface AuditEvent {
  readonly kind: string
  readonly apiVersion: string
  readonly level: string
  readonly auditID: string
  readonly stage: string
  readonly requestURI: string
  readonly verb: string
  readonly user: { readonly username?: string; readonly groups?: readonly string[] }
  readonly impersonatedUser?: { readonly username: string }
  readonly sourceIPs: readonly string[]
  readonly objectRef?: Readonly<Record<string, string>>
  readonly responseStatus: { readonly code: number; readonly message?: string }
  readonly requestReceivedTimestamp: string
  readonly stageTimestamp: string
  readonly annotations?: Readonly<Record<string, string>>
}

let scratch: string
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'sallyport-audit-'))
})
afterAll(() => rm(scratch, { recursive: true, force: true }))

async function eventsIn(file: string): Promise<AuditEvent[]> {
  const lines = (await readFile(file, 'utf8')).split('\n')
  expect(lines.pop()).toBe('')
  return lines.map((line): AuditEvent => JSON.parse(line))
}

const configMaps = '/api/v1/namespaces/default/configmaps'
const secrets = '/api/v1/namespaces/default/secrets'
const reviews = '/apis/authentication.k8s.io/v1/tokenreviews'

describe('every request is in the audit log, whatever became of it [GND-R82]', () => {
  let server: InProcessServer
  let events: AuditEvent[]
  const expected = new Map<string, number>()

  /** Sends a request under a name by which it is found again. */
  async function ask(caller: HttpsCaller, id: string, path: string, call: Call = {}) {
    const answer = await caller.request(path, {
      ...call,
      headers: { ...call.headers, 'Audit-Id': id },
    })
    expected.set(id, answer.status)
    return answer
  }

  beforeAll(async () => {
    const dataDirectory = join(scratch, 'every')
    server = await startInProcess({
      dataDirectory,
      flags: ['--request-timeout', '2s', '--max-request-body-bytes', '64Ki'],
    })
    await exercise()
    await server.halt()
    events = await eventsIn(join(dataDirectory, 'audit.log'))
  })

  async function exercise(): Promise<void> {
    const admin = await server.admin()
    const stranger = server.as({})
    const jane = server.as(await server.issue('jane', ['people']))
    const object = { metadata: { name: 'one' }, data: { a: 'x' } }
    await ask(admin, 'created', configMaps, { method: 'POST', body: object })
    await ask(admin, 'exists', configMaps, { method: 'POST', body: object })
    await ask(admin, 'invalid', configMaps, { method: 'POST', body: { metadata: {} } })
    await ask(admin, 'malformed', configMaps, { method: 'POST', body: '{' })
    await ask(admin, 'too-large', configMaps, { method: 'POST', body: 'x'.repeat(100_000) })
    const html = { 'content-type': 'text/html' }
    await ask(admin, 'wrong-type', configMaps, { method: 'POST', body: '<p>', headers: html })
    await ask(admin, 'absent', `${configMaps}/absent`)
    await ask(admin, 'nowhere', '/no/such/path')
    await ask(admin, 'not-acceptable', configMaps, { headers: { accept: 'text/html' } })
    await ask(admin, 'not-allowed', '/version', { method: 'DELETE' })
    await ask(admin, 'long-url', `/version?${'a'.repeat(20_000)}`)
    await ask(jane, 'forbidden', secrets)
    await ask(stranger, 'unauthorized', secrets)
    await ask(server.as({ token: 'wrong' }), 'wrong-token', '/version')
    await ask(stranger, 'anonymous', '/version')
    const as = { 'Impersonate-User': 'jane', 'Impersonate-Group': 'people' }
    await ask(admin, 'impersonated', configMaps, { headers: as })
    await ask(jane, 'impersonation-refused', configMaps, { headers: as })
    await ask(admin, 'deleted', `${configMaps}/one`, { method: 'DELETE' })
    const watch = `${configMaps}?watch=true&timeoutSeconds=1`
    await ask(admin, 'watched', watch)
    const slow = await admin.socket()
    slow.write(
      `POST ${configMaps} HTTP/1.1\r\nHost: a\r\nAudit-Id: slow\r\nContent-Length: 9\r\n\r\n`,
    )
    expected.set('slow', Number(/ (\d+) /.exec(await text(slow))?.[1]))
    const gone = admin.send(`${configMaps}?watch=true`, { headers: { 'Audit-Id': 'gone' } })
    await once(gone, 'response')
    gone.on('error', () => {}).destroy()
    expected.set('gone', 200)
  }

  const of = (id: string): AuditEvent[] => events.filter(({ auditID }) => auditID === id)
  const last = (id: string): AuditEvent => {
    const event = of(id).find(({ stage }) => stage === 'ResponseComplete')
    if (!event) throw new Error(`${id} is not in the audit log`)
    return event
  }

  test('with the code that its client got', () => {
    const codes = [...expected.keys()].map((id) => [id, last(id).responseStatus.code])
    expect(Object.fromEntries(codes)).toEqual(Object.fromEntries(expected))
    const distinct = new Set(expected.values())
    for (const code of [200, 201, 400, 401, 403, 404, 405, 406, 409, 413, 414, 415, 422, 504])
      expect(distinct).toContain(code)
  })

  test('as one Event of audit.k8s.io/v1 per end, in the form of Kubernetes', () => {
    for (const event of events) {
      expect(event).toMatchObject({
        kind: 'Event',
        apiVersion: 'audit.k8s.io/v1',
        level: 'Metadata',
      })
      expect(event.sourceIPs).toEqual(['127.0.0.1'])
      expect(event.stageTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
      expect(event.requestReceivedTimestamp <= event.stageTimestamp).toBe(true)
    }
    for (const id of expected.keys()) {
      const ends = of(id).filter(({ stage }) => stage === 'ResponseComplete')
      expect([id, ends.length]).toEqual([id, 1])
    }
  })

  test('with who, what and why', () => {
    expect(last('created')).toMatchObject({
      verb: 'create',
      requestURI: configMaps,
      user: { username: 'kubernetes-admin' },
      objectRef: { resource: 'configmaps', namespace: 'default', apiVersion: 'v1' },
      annotations: { 'authorization.k8s.io/decision': 'allow' },
    })
    expect(last('forbidden')).toMatchObject({
      verb: 'list',
      user: { username: 'jane', groups: ['people', 'system:authenticated'] },
      annotations: { 'authorization.k8s.io/decision': 'forbid' },
    })
    expect(last('wrong-token').responseStatus.message).toBe(
      'Authentication failed, attempted: bearer',
    )
    expect(last('unauthorized').user.username).toBeUndefined()
    expect(last('anonymous').user.username).toBe('system:anonymous')
    expect(last('impersonated')).toMatchObject({
      user: { username: 'kubernetes-admin' },
      impersonatedUser: { username: 'jane' },
    })
    expect(last('impersonation-refused').user.username).toBe('jane')
  })

  test('and a watch when it begins and when it ends', () => {
    for (const id of ['watched', 'gone'])
      expect(of(id).map(({ stage }) => stage)).toEqual(['ResponseStarted', 'ResponseComplete'])
  })

  test('in a file that only its owner can read', async () => {
    expect((await stat(join(scratch, 'every', 'audit.log'))).mode & 0o777).toBe(0o600)
  })
})

describe('no credential or secret is written down anywhere [GND-R82]', () => {
  const marker = (i: number): string => `Hush${i}Hush${i}Hush`
  const jwt = `eyJhbGciOiJFUzI1NiJ9.${Buffer.from(marker(90)).toString('base64url')}.c2ln`
  const answers: Answer[] = []

  test('after every way of handing one over, in log, audit log or answers to others', async () => {
    const dataDirectory = join(scratch, 'hush')
    const tokenFile = join(scratch, 'tokens.csv')
    await writeFile(tokenFile, `${marker(1)},tom,1\n`)
    const flags = ['--token-auth-file', tokenFile, '--log-level', 'debug']
    const server = await startInProcess({ dataDirectory, flags })
    await handOver(server)
    await reload(server, tokenFile)
    await server.halt()

    const audit = await readFile(join(dataDirectory, 'audit.log'), 'utf8')
    expect(audit.split('\n').length).toBeGreaterThan(15)
    expect(leaksIn(server.log)).toEqual([])
    expect(leaksIn(audit)).toEqual([])
    expect(leaksIn(answers.map((answer) => answer.text).join('\n'))).toEqual([])
  })

  async function handOver(server: InProcessServer): Promise<void> {
    const admin = await server.admin()
    const stranger = server.as({})
    const send = async (caller: HttpsCaller, path: string, call: Call = {}): Promise<void> => {
      answers.push(await caller.request(path, call))
    }
    await send(server.as({ token: marker(1) }), '/version')
    await send(server.as({ token: marker(2) }), '/version')
    const basic = Buffer.from(`root:${marker(3)}`).toString('base64')
    await send(stranger, '/version', { headers: { authorization: `Basic ${basic}` } })
    await send(stranger, '/version', { headers: { authorization: marker(4) } })
    for (const name of ['token', 'access_token', 'password', 'Client%5FSecret', 'code'])
      await send(admin, `/version?${name}=${marker(5)}&x=1`)
    await send(admin, `/version?x=${jwt}`, { headers: { 'user-agent': `agent ${jwt}` } })
    await admin.get(`${secrets}/${jwt}`)
    const protocol = `base64url.bearer.authorization.k8s.io.${Buffer.from(marker(6)).toString('base64url')}`
    await send(stranger, '/version', { headers: { 'Sec-WebSocket-Protocol': protocol } })
    await admin.post(reviews, reviewOf(marker(7))) // which answers with what it was sent
    await send(admin, reviews, { method: 'POST', body: { ...reviewOf(marker(7)), kind: 'Wrong' } })
    await secretsThatFail(admin, send)
    // What its owner reads back is no leak; who may not read sees nothing.
    await admin.post(secrets, secretOf('kept', marker(8)))
    await send(server.as(await server.issue('jane')), `${secrets}/kept`)
    await (await admin.watch(`${secrets}?watch=true&timeoutSeconds=1`)).ended
  }

  type Send = (caller: HttpsCaller, path: string, call?: Call) => Promise<void>

  async function secretsThatFail(admin: HttpsCaller, send: Send): Promise<void> {
    const body = JSON.stringify(secretOf('bad', marker(9)))
    await send(admin, secrets, { method: 'POST', body: body.slice(0, -1) })
    await send(admin, secrets, { method: 'POST', body: `${body}trailing ${marker(9)}` })
    const patch = { 'content-type': 'application/json-patch+json' }
    const steps = [{ op: 'replace', path: '/data/absent', value: marker(10) }]
    await send(admin, `${secrets}/kept`, { method: 'PATCH', body: steps, headers: patch })
    await send(admin, `${secrets}/other`, { method: 'PUT', body })
    await send(admin, secrets, { method: 'POST', body: secretOf('Not A Name', marker(11)) })
  }

  async function reload(server: InProcessServer, tokenFile: string): Promise<void> {
    const from = server.logLength
    await writeFile(tokenFile, `${marker(12)},"unclosed\n`)
    await server.logged('keeping the tokens known before', from)
  }

  const secretOf = (name: string, value: string) => ({ metadata: { name }, stringData: { value } })
  const reviewOf = (token: string) => ({
    kind: 'TokenReview',
    apiVersion: 'authentication.k8s.io/v1',
    spec: { token },
  })

  /** Every marker that a text holds, plain or in base64. */
  function leaksIn(haystack: string): string[] {
    const forms = Array.from({ length: 13 }, (_none, i) => marker(i)).flatMap((plain) => [
      plain,
      Buffer.from(plain).toString('base64'),
      Buffer.from(plain).toString('base64url'),
      Buffer.from(`root:${plain}`).toString('base64'),
    ])
    return [...forms, jwt, jwt.split('.')[1] ?? jwt, 'PRIVATE KEY'].filter((form) =>
      haystack.includes(form),
    )
  }
})

test('the log is moved aside when it is large, the oldest is dropped, and no line is lost [GND-R82]', async () => {
  const dataDirectory = join(scratch, 'rotated')
  const flags = ['--audit-log-maxsize', '1', '--audit-log-maxbackup', '2']
  const server = await startInProcess({ dataDirectory, flags })
  const admin = await server.admin()
  const longPath = `/version?${'a'.repeat(10_000)}`
  for (let i = 0; i < 400; i++) await admin.get(longPath, { 'Audit-Id': `request-${i}` })
  await server.halt()

  const files = (await readdir(dataDirectory)).filter((name) => name.startsWith('audit'))
  expect(files.length).toBe(3)
  expect(files).toContainEqual(expect.stringMatching(/^audit-\d{4}-\d\d-\d\dT[\d-]+\.\d{3}\.log$/))
  const ids: string[] = []
  for (const name of files.toSorted()) {
    const { size, mode } = await stat(join(dataDirectory, name))
    expect(size).toBeLessThanOrEqual(1024 * 1024)
    expect(mode & 0o777).toBe(0o600)
    ids.push(...(await eventsIn(join(dataDirectory, name))).map(({ auditID }) => auditID))
  }
  expect(new Set(ids).size).toBe(ids.length)
  const newest = Array.from({ length: 200 }, (_none, i) => `request-${i + 200}`)
  expect(ids).toEqual(expect.arrayContaining(newest))
  expect(ids).not.toContain('request-0')
})

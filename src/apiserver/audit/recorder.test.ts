import { afterEach, describe, expect, test } from 'vitest'
import { ApiError, type Clock, isRecord } from '../../core/index.ts'
import type { Exchange } from '../pipeline/exchange.ts'
import {
  type Ask,
  type DepsChanges,
  depsWith,
  identity,
  type Running,
  serve,
} from '../pipeline/pipeline.suite.ts'
import { AuditRecorder, auditLine } from './recorder.ts'

const running: Running[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.stop()))
})

const clock: Clock = { now: () => Date.UTC(2026, 0, 31, 12), monotonic: () => 0 }

/** The audit lines of one request. */
async function audited(
  path: string,
  ask: Ask,
  changes: DepsChanges & { requestReceived?: boolean } = {},
): Promise<{ text: string; events: Record<string, unknown>[] }> {
  let text = ''
  const sink = {
    write: (line: string) => {
      text += line
    },
    dropped: 0,
    close: () => Promise.resolve(),
  }
  const requestReceived = changes.requestReceived ?? false
  const audit = new AuditRecorder({ sink, clock, requestReceived })
  const server = await serve('HTTP/1.1', depsWith({ clock, audit, ...changes }))
  running.push(server)
  await server.ask(path, ask)
  await server.pipeline.drain()
  const lines = text.trimEnd().split('\n')
  return { text, events: lines.map((line) => JSON.parse(line)).filter(isRecord) }
}

const pod = '/api/v1/namespaces/a/pods/b'
const ann = { headers: { authorization: 'Bearer ann', 'user-agent': 'kubectl/v1' } }

test('an event has the form of audit.k8s.io/v1 [GND-R82]', async () => {
  const headers = { ...ann.headers, 'audit-id': 'id-1' }
  const { events } = await audited(`${pod}/status?dryRun=All`, { headers, method: 'PUT' })
  expect(events).toEqual([
    {
      kind: 'Event',
      apiVersion: 'audit.k8s.io/v1',
      level: 'Metadata',
      auditID: 'id-1',
      stage: 'ResponseComplete',
      requestURI: `${pod}/status?dryRun=All`,
      verb: 'update',
      user: { username: 'ann', groups: ['system:authenticated'] },
      sourceIPs: ['127.0.0.1'],
      userAgent: 'kubectl/v1',
      objectRef: {
        resource: 'pods',
        namespace: 'a',
        name: 'b',
        apiVersion: 'v1',
        subresource: 'status',
      },
      responseStatus: { metadata: {}, code: 200 },
      requestReceivedTimestamp: '2026-01-31T12:00:00.000000Z',
      stageTimestamp: '2026-01-31T12:00:00.000000Z',
      annotations: {
        'authorization.k8s.io/decision': 'allow',
        'authorization.k8s.io/reason': '',
      },
    },
  ])
})

describe('stages', () => {
  const stages = async (...asked: Parameters<typeof audited>) =>
    (await audited(...asked)).events.map((event) => event['stage'])

  test('a watch has a line when it starts and one when it ends', async () => {
    expect(await stages('/api/v1/pods?watch=1', ann)).toEqual([
      'ResponseStarted',
      'ResponseComplete',
    ])
  })

  test('that a request came in is recorded on demand', async () => {
    expect(await stages(pod, ann, { requestReceived: true })).toEqual([
      'RequestReceived',
      'ResponseComplete',
    ])
  })
})

describe('refusals are recorded with their reason [GND-R82]', () => {
  const denying: DepsChanges = {
    authorizer: {
      authorize: () => ({ allowed: false, reason: 'no role' }),
      rulesFor: () => ({ resourceRules: [], nonResourceRules: [], incomplete: false }),
    },
  }

  test('of a wrong credential: what was tried, not the credential', async () => {
    const wrong = { headers: { authorization: 'Bearer wrong' } }
    const { events, text } = await audited(pod, wrong)
    expect(events[0]).toMatchObject({
      user: {},
      responseStatus: {
        status: 'Failure',
        reason: 'Unauthorized',
        message: 'Authentication failed, attempted: bearer',
        code: 401,
      },
    })
    expect(text).not.toContain('wrong')
  })

  test('of a missing right: the decision', async () => {
    const { events } = await audited(pod, ann, denying)
    expect(events[0]).toMatchObject({
      responseStatus: { reason: 'Forbidden', code: 403 },
      annotations: {
        'authorization.k8s.io/decision': 'forbid',
        'authorization.k8s.io/reason': 'no role',
      },
    })
  })

  test('of a path that cannot be read: the method and the path as they came', async () => {
    const { events } = await audited('/api//x', ann)
    expect(events[0]).toMatchObject({ verb: 'get', requestURI: '/api//x', user: {} })
  })
})

test('who acts as somebody else is recorded beside whom he acts as', async () => {
  const { events } = await audited(pod, ann, { impersonate: () => identity('bob') })
  expect(events[0]).toMatchObject({
    user: { username: 'ann' },
    impersonatedUser: { username: 'bob' },
  })
})

test('addresses that a client claims come before the one that is certain', async () => {
  const headers = { ...ann.headers, 'x-forwarded-for': '10.0.0.1, nonsense"}, ::1' }
  const { events } = await audited(pod, { headers })
  expect(events[0]?.['sourceIPs']).toEqual(['10.0.0.1', '::1', '127.0.0.1'])
})

test('no secret gets into a line, whichever way it comes [GND-R82]', async () => {
  const jwt = 'eyJhbGciOiJFUzI1NiJ9.c2VjcmV0LXBheWxvYWQ.c2lnbmF0dXJl'
  const { text } = await audited(
    `/apis/x.example/v1/things/${jwt}/proxy/${jwt}?access_token=hunter2&to%6ben=hunter3&x=${jwt}`,
    {
      headers: {
        authorization: `Bearer ${jwt}`,
        cookie: 'session=hunter4',
        'user-agent': `curl ${jwt}`,
        'x-remote-extra-password': 'hunter5',
      },
    },
    {
      authenticator: { name: 'fixed', authenticate: () => identity('ann') },
      resources: () => {
        throw new ApiError('Invalid', 'Secret "a" is invalid: data: "hunter6"')
      },
    },
  )
  expect(text).toContain('REDACTED')
  expect(text).toContain('"reason":"Invalid"')
  expect(text).not.toMatch(/hunter|c2VjcmV0|c2lnbmF0/)
})

const secret = '0123456789abcdef'
const token = `abcdef.${secret}`

/** Every place of an event, and whether a client can put text there. */
const places: Readonly<Record<string, 'constant' | 'client'>> = {
  kind: 'constant',
  apiVersion: 'constant',
  level: 'constant',
  stage: 'constant',
  requestReceivedTimestamp: 'constant',
  stageTimestamp: 'constant',
  'responseStatus.status': 'constant',
  'responseStatus.reason': 'constant',
  'responseStatus.code': 'constant',
  'annotations[authorization.k8s.io/decision]': 'constant',
  auditID: 'client',
  requestURI: 'client',
  verb: 'client',
  'user.username': 'client',
  'user.uid': 'client',
  'user.groups': 'client',
  'user.extra': 'client',
  'user.extra (key)': 'client',
  'impersonatedUser.username': 'client',
  'impersonatedUser.uid': 'client',
  'impersonatedUser.groups': 'client',
  'impersonatedUser.extra': 'client',
  'impersonatedUser.extra (key)': 'client',
  sourceIPs: 'client',
  userAgent: 'client',
  'objectRef.resource': 'client',
  'objectRef.namespace': 'client',
  'objectRef.name': 'client',
  'objectRef.apiGroup': 'client',
  'objectRef.apiVersion': 'client',
  'objectRef.subresource': 'client',
  'responseStatus.message': 'client',
  'annotations[authorization.k8s.io/reason]': 'client',
  annotations: 'client',
  'annotations (key)': 'client',
}

/** The places at which a string stands, and whether it is redacted there. */
function placesOf(value: unknown, at: string): [place: string, isRedacted: boolean][] {
  if (Array.isArray(value)) return value.flatMap((each) => placesOf(each, at))
  if (!isRecord(value)) return [[at, String(value).includes('REDACTED')]]
  return Object.entries(value).flatMap(([key, each]) => {
    const isOwn = at !== '' && !/^(?:user|impersonatedUser|objectRef|responseStatus)$/.test(at)
    const fixed = at === 'annotations' && key.startsWith('authorization.k8s.io/')
    if (fixed) return placesOf(each, `${at}[${key}]`)
    if (key === 'metadata') return []
    const here: [string, boolean][] = isOwn ? [[`${at} (key)`, key.includes('REDACTED')]] : []
    return [...here, ...placesOf(each, isOwn ? at : at === '' ? key : `${at}.${key}`)]
  })
}

/** An exchange with a text in every place that a client reaches. */
function exchangeWith(text: string): Exchange {
  const user = { username: text, uid: text, groups: [text], extra: { [text]: [text] } }
  return {
    auditId: text,
    info: {
      isResourceRequest: true,
      verb: text,
      resource: text,
      namespace: text,
      name: text,
      group: text,
      version: text,
      subresource: text,
    },
    request: { url: `/${text}?x=${text}`, method: 'GET', headers: { 'user-agent': text } },
    sourceAddress: text,
    impersonator: { user, method: 'x' },
    knownAuthentication: { user: { ...user }, method: 'x' },
    code: 403,
    failure: { status: 'Failure', reason: 'Forbidden', code: 403, message: text },
    decision: { allowed: false, reason: text },
    annotations: new Map([[text, text]]),
    receivedAt: 0,
  } as never
}

const spellings = [
  ['plain', token],
  ['inside a word', `x${token}y`],
  ['with a longer secret', `abcdef.${secret.repeat(3)}`],
  ['percent-encoded dot', `abcdef%2e${secret}`],
  ['percent-encoded letters', `%61bcdef%2E%30123456789abcdef`],
  ['percent-encoded twice', `abcdef%252E${secret}`],
  ['escaped as in JSON', `\\u0061bcdef\\u002e${secret}`],
  ['escaped wholly', Array.from(token, (c) => `\\u00${c.charCodeAt(0).toString(16)}`).join('')],
  ['base64', Buffer.from(token).toString('base64')],
  ['base64 after one byte', Buffer.from(`x${token}`).toString('base64')],
  ['base64url after two bytes', Buffer.from(`xy${token}zz`).toString('base64url')],
  ['bearer', `Bearer ${token}`],
  ['where a long text is cut', `${'x'.repeat(1_005)}.${token}`],
] as const

describe('a bootstrap token', () => {
  test.each(spellings)('[SEC-R1501] %s is in no place of an event', (_name, text) => {
    const stages = ['RequestReceived', 'ResponseStarted', 'ResponseComplete'] as const
    const lines = stages.map((stage) => auditLine(exchangeWith(text), stage, 0))
    for (const part of [secret, JSON.stringify(text).slice(-20, -1)])
      expect(lines.join('')).not.toContain(part)
    const found = new Map(lines.flatMap((line) => placesOf(JSON.parse(line), '')))
    expect(Object.fromEntries(found)).toEqual(
      Object.fromEntries(Object.entries(places).map(([place, by]) => [place, by === 'client'])),
    )
  })
})

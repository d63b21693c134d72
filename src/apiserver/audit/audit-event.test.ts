import { afterEach, describe, expect, test } from 'vitest'
import { ApiError, type Clock, isRecord } from '../../core/index.ts'
import { redactUri } from '../pipeline/failure.ts'
import { type Ask, identity, partsWith, type Running, serve } from '../pipeline/pipeline.suite.ts'
import type { PipelineParts } from '../pipeline/types.ts'
import { AuditRecorder } from './recorder.ts'

const running: Running[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.stop()))
})

const clock: Clock = { now: () => Date.UTC(2026, 0, 31, 12), monotonic: () => 0 }

/** The audit lines of one request. */
async function audited(
  path: string,
  ask: Ask,
  changes: Partial<PipelineParts> & { requestReceived?: boolean } = {},
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
  const server = await serve('HTTP/1.1', partsWith({ clock, audit, ...changes }))
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
  const denying: Partial<PipelineParts> = {
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
    `/api/v1/pods/${jwt}/proxy/${jwt}?access_token=hunter2&to%6ben=hunter3&x=${jwt}`,
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

test.each([
  ['/a?watch=1&continue=eyJ2IjoibWV0YSJ9', '/a?watch=1&continue=eyJ2IjoibWV0YSJ9'],
  ['/a?token=x', '/a?token=REDACTED'],
  ['/a?x=1&access_token=x&y=2', '/a?x=1&access_token=REDACTED&y=2'],
  ['/a?API-Key=x', '/a?API-Key=REDACTED'],
  ['/a?client%5Fsecret=x', '/a?client%5Fsecret=REDACTED'],
  ['/a?code=x&state=y', '/a?code=REDACTED&state=y'],
  ['/a?%zz=x', '/a?%zz=x'],
  ['/a?add-auth=true', '/a?add-auth=true'],
  ['/a?flag', '/a?flag'],
  ['/a', '/a'],
  ['/a?x=eyJhbGciOi.e30.c2ln', '/a?x=REDACTED'],
  ['/a?x=eyJhbGciOi.e30.c2ln.more', '/a?x=REDACTED.more'],
  ['/a?x=eyJhbGciOi.e30', '/a?x=REDACTED'],
  ['/a/preyJhbGciOi.e30./b', '/a/prREDACTED/b'],
  ['/a?x=eyJhbGciOi.', '/a?x=eyJhbGciOi.'],
  ['/a?x=eyJabcd.e30', '/a?x=eyJabcd.e30'],
  ['/a?x=b.eyJhbGciOi.e30.c,eyJhbGciOi.e30', '/a?x=b.REDACTED,REDACTED'],
])('of %s is written %s', (uri, written) => {
  expect(redactUri(uri)).toBe(written)
})

test('a URI full of beginnings of tokens is redacted in no time', () => {
  const began = performance.now()
  redactUri(`/a?${'eyJ'.repeat(50_000)}`)
  redactUri(`/a?${'eyJaaaaaa'.repeat(20_000)}.!`)
  expect(performance.now() - began).toBeLessThan(1_000)
})

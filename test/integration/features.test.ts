import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Feature, FeatureParts, OpenContext } from '../../src/apiserver/index.ts'
import { badRequest, hasReason, wellKnownKinds } from '../../src/core/index.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

const closed: string[] = []

/** A feature that adds one thing of every sort. */
const everything: Feature = { name: 'everything', open: openEverything }

async function openEverything(context: OpenContext): Promise<FeatureParts> {
  const { view, onClose, bodies, signal } = context
  onClose('everything', () => void closed.push('everything'))
  let where = ''
  return {
    start: async ({ location }) => {
      const namespaces = await view.list(wellKnownKinds.namespace, {}, signal)
      where = `${location.url} ${namespaces.items.length > 0}`
    },
    tokens: [
      {
        audiences: 'own',
        authenticator: {
          name: 'magic',
          authenticateToken: (token) =>
            token === 'magic'
              ? { user: { username: 'merlin', groups: ['system:masters'] }, method: 'magic' }
              : undefined,
        },
      },
    ],
    routes: [
      {
        path: '/where',
        handle: (_request, response) => {
          response.end(where)
        },
      },
    ],
    subresources: [
      {
        entry: {
          group: '',
          version: 'v1',
          resource: 'configmaps',
          name: 'shout',
          kind: { group: '', version: 'v1', kind: 'ConfigMap' },
          verbs: ['create'],
        },
        handle: async ({ request }, response, aborted) => {
          response.end(String(await bodies.read(request, aborted)).toUpperCase())
        },
      },
    ],
    admissions: [
      ({ object }) => {
        if (object?.metadata.name === 'frog') throw badRequest('no frogs here')
      },
    ],
  }
}

describe('a feature of the server', () => {
  let server: InProcessServer
  beforeAll(async () => {
    server = await startInProcess({ features: [everything] })
  })
  afterAll(() => server.close())

  const path = '/api/v1/namespaces/default/configmaps'

  test('adds a kind of token', async () => {
    const answer = await server.as({ token: 'magic' }).get('/api/v1/namespaces')
    expect(answer.status).toBe(200)
  })

  test('adds a path, and knows where the server is reached', async () => {
    const answer = await (await server.admin()).get('/where')
    expect(answer.text).toBe(`https://127.0.0.1:${server.port} true`)
  })

  test('adds a subresource, which discovery shows', async () => {
    const admin = await server.admin()
    const answer = await admin.request(`${path}/any/shout`, { method: 'POST', body: 'hello' })
    expect(answer.text).toBe('HELLO')
    expect((await admin.get('/api/v1')).text).toContain('"configmaps/shout"')
  })

  test('adds a check on writes', async () => {
    const answer = await (await server.admin()).request(path, {
      method: 'POST',
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'frog' } },
    })
    expect([answer.status, answer.text.includes('no frogs here')]).toEqual([400, true])
  })

  test('is closed with the server', async () => {
    await server.drain()
    expect(closed).toEqual(['everything'])
  })
})

test('no write is accepted before all features are open, and all are afterwards', async () => {
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'early' } }
  const outcomes: string[] = []
  const early: Feature = {
    name: 'early',
    open: async ({ view, signal }) => {
      const write = async (): Promise<string> =>
        view.write('create', namespace, {}, signal).then(
          () => 'written',
          (error: unknown) => (hasReason(error, 'ServiceUnavailable') ? 'rejected' : 'failed'),
        )
      outcomes.push(await write())
      return {
        start: async () => {
          outcomes.push(await write())
        },
      }
    },
  }
  const server = await startInProcess({ features: [early] })
  await server.close()
  expect(outcomes).toEqual(['rejected', 'written'])
})

test('nobody has defined kinds of their own, which kubectl wants to hear before it sends a review', async () => {
  const server = await startInProcess()
  try {
    const admin = await server.admin()
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
    const { status, object } = await admin.get(path)
    expect([status, object]).toEqual([
      200,
      {
        kind: 'CustomResourceDefinitionList',
        apiVersion: 'apiextensions.k8s.io/v1',
        metadata: { resourceVersion: '1' },
        items: [],
      },
    ])
    expect((await admin.post(path, {})).status).toBe(405)
    expect((await server.as(await server.issue('jane')).get(path)).status).toBe(403)
    expect((await admin.get('/apis')).text).not.toContain('apiextensions')
  } finally {
    await server.close()
  }
})

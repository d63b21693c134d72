import { gunzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { kindDefinitions } from '../kinds/index.ts'
import { reviewResources } from '../reviews/index.ts'
import { ApiDocuments, type DocumentRequest } from './documents.ts'

const documents = new ApiDocuments(
  {
    kinds: kindDefinitions,
    reviews: reviewResources,
    extras: [
      {
        group: '',
        version: 'v1',
        resource: 'serviceaccounts',
        name: 'token',
        kind: { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' },
        verbs: ['create'],
      },
    ],
  },
  { address: '192.0.2.1:6443', version: 'v1.36.3' },
)

const ask = (path: string, request: Partial<DocumentRequest> = {}) =>
  documents.answer({ path, query: new URLSearchParams(), accept: undefined, ...request })
const read = (path: string, accept?: string) => JSON.parse(String(ask(path, { accept })!.body))

const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
const aggregatedBeta = 'application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList'

describe('discovery, legacy form [GND-R42]', () => {
  test('/api says where the server is', () => {
    expect(read('/api')).toEqual({
      kind: 'APIVersions',
      versions: ['v1'],
      serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: '192.0.2.1:6443' }],
    })
  })

  test('/apis lists the groups in the order of Kubernetes', () => {
    const { groups } = read('/apis')
    expect(groups.map((group: { name: string }) => group.name)).toEqual([
      'authentication.k8s.io',
      'authorization.k8s.io',
      'certificates.k8s.io',
      'rbac.authorization.k8s.io',
      'coordination.k8s.io',
      'discovery.k8s.io',
    ])
    expect(groups[0]).toEqual({
      name: 'authentication.k8s.io',
      versions: [{ groupVersion: 'authentication.k8s.io/v1', version: 'v1' }],
      preferredVersion: { groupVersion: 'authentication.k8s.io/v1', version: 'v1' },
    })
  })

  test('/apis/GROUP is the same entry as an object', () => {
    expect(read('/apis/discovery.k8s.io')).toMatchObject({
      kind: 'APIGroup',
      apiVersion: 'v1',
      name: 'discovery.k8s.io',
    })
  })

  const entry = (path: string, name: string) =>
    read(path).resources.find((resource: { name: string }) => resource.name === name)

  test('a stored resource has all its verbs, names and its storage hash', () => {
    expect(entry('/api/v1', 'pods')).toEqual({
      name: 'pods',
      singularName: 'pod',
      namespaced: true,
      kind: 'Pod',
      verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
      shortNames: ['po'],
      categories: ['all'],
      storageVersionHash: 'xPOwRZ+Yhw8=',
    })
  })

  test.each([
    [
      '/api/v1',
      'namespaces',
      { verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'] },
    ],
    ['/api/v1', 'namespaces/finalize', { kind: 'Namespace', singularName: '', verbs: ['update'] }],
    ['/api/v1', 'pods/status', { kind: 'Pod', verbs: ['get', 'patch', 'update'] }],
    [
      '/api/v1',
      'serviceaccounts/token',
      { kind: 'TokenRequest', group: 'authentication.k8s.io', version: 'v1', verbs: ['create'] },
    ],
    [
      '/apis/certificates.k8s.io/v1',
      'certificatesigningrequests/approval',
      { kind: 'CertificateSigningRequest', namespaced: false },
    ],
    [
      '/apis/authorization.k8s.io/v1',
      'localsubjectaccessreviews',
      { kind: 'LocalSubjectAccessReview', namespaced: true, verbs: ['create'] },
    ],
  ])('%s lists %s', (path, name, facts) => {
    expect(entry(path, name)).toMatchObject(facts)
  })

  test('what is not served has no document', () => {
    expect(ask('/apis/apps')).toBeUndefined()
    expect(ask('/apis/apps/v1')).toBeUndefined()
    expect(ask('/swagger.json')).toBeUndefined()
  })
})

describe('discovery, aggregated form [GND-R42]', () => {
  test('kubectl gets it for the Accept header that it sends', () => {
    const accept = `${aggregated},${aggregatedBeta},application/json`
    const answer = ask('/apis', { accept })!
    expect(answer.headers['Content-Type']).toBe(aggregated)
    expect(JSON.parse(String(answer.body))).toMatchObject({
      kind: 'APIGroupDiscoveryList',
      apiVersion: 'apidiscovery.k8s.io/v2',
    })
  })

  test('older clients get the version that they ask for', () => {
    const answer = ask('/api', { accept: `${aggregatedBeta},application/json` })!
    expect(answer.headers['Content-Type']).toBe(aggregatedBeta)
    expect(JSON.parse(String(answer.body)).apiVersion).toBe('apidiscovery.k8s.io/v2beta1')
  })

  test('both forms say the same', () => {
    const { items } = read('/api', aggregated)
    const names = items[0].versions[0].resources.flatMap(
      (resource: { resource: string; subresources?: { subresource: string }[] }) => [
        resource.resource,
        ...(resource.subresources ?? []).map((part) => `${resource.resource}/${part.subresource}`),
      ],
    )
    expect(names).toEqual(
      read('/api/v1').resources.map((resource: { name: string }) => resource.name),
    )
  })

  test('a resource has its scope, kind and subresources', () => {
    const { items } = read('/api', aggregated)
    expect(items[0]).toMatchObject({
      metadata: {},
      versions: [{ version: 'v1', freshness: 'Current' }],
    })
    expect(items[0].versions[0].resources).toContainEqual(
      expect.objectContaining({
        resource: 'serviceaccounts',
        responseKind: { group: '', version: '', kind: 'ServiceAccount' },
        scope: 'Namespaced',
        singularResource: 'serviceaccount',
        subresources: [
          {
            subresource: 'token',
            responseKind: { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' },
            verbs: ['create'],
          },
        ],
      }),
    )
  })

  test('a path that has no aggregated form falls back to the plain one', () => {
    const answer = ask('/api/v1', { accept: `${aggregated},application/json` })!
    expect(answer.headers['Content-Type']).toBe('application/json')
  })
})

describe('answers', () => {
  test.each(['application/vnd.kubernetes.protobuf', 'text/html', aggregated.replace('v2', 'v9')])(
    'a client that takes only %s gets a 406',
    (accept) => {
      expect(() => ask('/apis', { accept })).toThrow(
        expect.objectContaining({ reason: 'NotAcceptable' }),
      )
    },
  )

  test.each([undefined, '*/*', 'application/*', 'application/json, */*;q=0.1'])(
    'Accept %s gets JSON',
    (accept) => {
      expect(ask('/apis', { accept })!.headers['Content-Type']).toBe('application/json')
    },
  )

  test('a client that has the document already gets a 304', () => {
    const { headers } = ask('/apis', { accept: aggregated })!
    const again = ask('/apis', { accept: aggregated, ifNoneMatch: headers['ETag']! })!
    expect(again).toMatchObject({ status: 304, headers: { ETag: headers['ETag'] } })
    expect(again.body).toHaveLength(0)
  })

  test('the two forms of a path have different tags', () => {
    expect(ask('/apis')!.headers['ETag']).not.toBe(
      ask('/apis', { accept: aggregated })!.headers['ETag'],
    )
  })

  test.each([
    ['gzip, deflate', true],
    ['br;q=1, gzip;q=0.5', true],
    ['gzip;q=0', false],
    ['identity', false],
    [undefined, false],
  ])('Accept-Encoding %s: compressed %s', (acceptEncoding, compressed) => {
    const answer = ask('/openapi/v3/api/v1', { acceptEncoding })!
    expect(answer.headers['Content-Encoding'] === 'gzip').toBe(compressed)
    const text = compressed ? gunzipSync(answer.body) : answer.body
    expect(JSON.parse(String(text)).openapi).toBe('3.0.0')
  })

  test('a slash at the end changes nothing', () => {
    expect(ask('/apis/')).toEqual(ask('/apis'))
  })
})

describe('OpenAPI v3 [GND-R43]', () => {
  test('the index names every group and version with its hash', () => {
    const { paths } = read('/openapi/v3')
    expect(Object.keys(paths)).toContain('apis/rbac.authorization.k8s.io/v1')
    for (const { serverRelativeURL } of Object.values<{ serverRelativeURL: string }>(paths)) {
      const url = new URL(serverRelativeURL, 'https://server')
      const answer = ask(url.pathname, { query: url.searchParams })!
      expect(answer.status).toBe(200)
      expect(answer.headers['Cache-Control']).toContain('immutable')
    }
  })

  test('an old hash leads to the document of today', () => {
    const answer = ask('/openapi/v3/api/v1', { query: new URLSearchParams('hash=OLD') })!
    expect(answer.status).toBe(301)
    expect(answer.headers['Location']).toMatch(/^\/openapi\/v3\/api\/v1\?hash=[0-9A-F]{64}$/)
  })

  test('every kind that can be patched takes fieldValidation, dryRun and strategic patches', () => {
    for (const { kind } of kindDefinitions) {
      const root = kind.group ? `/apis/${kind.group}/${kind.version}` : `/api/${kind.version}`
      const scope = kind.namespaced ? '/namespaces/{namespace}' : ''
      const document = read(`/openapi/v3${root}`)
      const { patch } = document.paths[`${root}${scope}/${kind.resource}/{name}`]
      const names = patch.parameters.map((parameter: { name: string }) => parameter.name)
      expect(names).toEqual(expect.arrayContaining(['fieldValidation', 'dryRun']))
      expect(patch.requestBody.content).toHaveProperty(['application/strategic-merge-patch+json'])
      expect(patch['x-kubernetes-group-version-kind'].kind).toBe(kind.kind)
    }
  })

  test('every reference leads somewhere', () => {
    for (const path of documents.paths.filter((one) => one.startsWith('/openapi/v3/'))) {
      const text = String(ask(path)!.body)
      const { schemas } = JSON.parse(text).components
      for (const [, name] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g))
        expect(schemas).toHaveProperty([name!])
    }
  })

  test('merge keys, enums, defaults and our own words are there', () => {
    const { schemas } = read('/openapi/v3/api/v1').components
    expect(schemas['io.k8s.api.core.v1.PodSpec'].properties.containers).toMatchObject({
      'x-kubernetes-patch-merge-key': 'name',
      'x-kubernetes-patch-strategy': 'merge',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
    })
    expect(schemas['io.k8s.api.core.v1.ServicePort'].properties.protocol).toEqual({
      type: 'string',
      default: 'TCP',
      enum: ['SCTP', 'TCP', 'UDP'],
    })
    for (const { kind } of kindDefinitions.filter((definition) => definition.kind.group === ''))
      expect(schemas[`io.k8s.api.core.v1.${kind.kind}`].description).toMatch(/\.$/)
  })
})

describe('OpenAPI v2 [GND-R65]', () => {
  const protobuf = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'
  const asKubectl = protobuf.replace('v2.v1', 'v2@v1')

  test.each([
    [undefined, 'application/json'],
    ['*/*', 'application/json'],
    ['application/*', 'application/json'],
    [protobuf, protobuf],
    [asKubectl, protobuf],
    [`${asKubectl};q=0.5,application/json;q=0.9`, 'application/json'],
    [`text/html,${asKubectl}`, protobuf],
  ])('Accept %s gets %s', (accept, contentType) => {
    expect(ask('/openapi/v2', { accept })!.headers['Content-Type']).toBe(contentType)
  })

  test.each(['text/html', 'application/yaml', aggregated])(
    'a client that takes only %s gets a 406 that names both forms',
    (accept) => {
      expect(() => ask('/openapi/v2', { accept })).toThrow(
        expect.objectContaining({
          reason: 'NotAcceptable',
          message: `only the following media types are accepted: application/json, ${protobuf}`,
        }),
      )
    },
  )

  test('the protobuf form is of this document only', () => {
    expect(() => ask('/openapi/v3', { accept: asKubectl })).toThrow(
      expect.objectContaining({ reason: 'NotAcceptable' }),
    )
  })

  test.each([undefined, asKubectl])('Accept %s: 304 to whoever has it, and gzip', (accept) => {
    const { headers, body } = ask('/openapi/v2', { accept })!
    const again = ask('/openapi/v2', { accept, ifNoneMatch: headers['ETag']! })!
    expect(again).toMatchObject({ status: 304, headers: { ETag: headers['ETag'] } })
    const zipped = ask('/openapi/v2', { accept, acceptEncoding: 'gzip' })!
    expect(zipped.headers['Content-Encoding']).toBe('gzip')
    expect(gunzipSync(zipped.body).equals(body)).toBe(true)
  })

  test('the two forms have different tags', () => {
    expect(ask('/openapi/v2')!.headers['ETag']).not.toBe(
      ask('/openapi/v2', { accept: asKubectl })!.headers['ETag'],
    )
  })

  test('a hash in the query means nothing here', () => {
    const answer = ask('/openapi/v2', { query: new URLSearchParams('hash=OLD') })!
    expect(answer.status).toBe(200)
  })
})

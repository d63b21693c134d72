import { describe, expect, test } from 'vitest'
import { kindDefinitions } from '../kinds/index.ts'
import { reviewResources } from '../reviews/index.ts'
import { apiModel } from './api-model.ts'
import { openapiDocument } from './openapi.ts'
import { openapiOfPath } from './openapi-types.ts'
import { swaggerDocument } from './openapi-v2.ts'
import { encodeSwagger } from './openapi-v2-protobuf.ts'

const plainPath = {
  path: '/openid/v1/jwks',
  tag: 'openid',
  description: 'The keys.',
  operationId: 'getKeys',
  contentType: 'application/jwk-set+json',
}
const v3 = [
  ...apiModel({ kinds: kindDefinitions, reviews: reviewResources }).map((groupVersion) =>
    openapiDocument(groupVersion, 'v1.36.3'),
  ),
  openapiOfPath(plainPath, 'v1.36.3'),
]
const v2 = swaggerDocument(v3, 'v1.36.3')

describe('one document of OpenAPI v2 says what those of v3 say [GND-R65]', () => {
  test('it has every path and every schema of theirs', () => {
    for (const { paths, components } of v3) {
      for (const path of Object.keys(paths)) expect(v2.paths).toHaveProperty([path])
      for (const [name, { properties = {} }] of Object.entries(components?.schemas ?? {}))
        expect(Object.keys(v2.definitions[name]?.properties ?? {})).toEqual(Object.keys(properties))
    }
  })

  test('every reference leads to a definition', () => {
    const references = [...JSON.stringify(v2).matchAll(/"\$ref":"([^"]+)"/g)]
    expect(references.length).toBeGreaterThan(100)
    for (const [, reference = ''] of references) {
      expect(reference).toMatch(/^#\/definitions\//)
      expect(v2.definitions).toHaveProperty([reference.replace('#/definitions/', '')])
    }
  })

  test('a kind of every group is named with all of them, each once', () => {
    const kinds = v2.definitions['io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions']?.[
      'x-kubernetes-group-version-kind'
    ]?.map(({ group, kind }) => `${group}/${kind}`)
    expect(kinds).toEqual([...new Set(kinds)])
    expect(kinds).toEqual(
      expect.arrayContaining(['/DeleteOptions', 'rbac.authorization.k8s.io/DeleteOptions']),
    )
  })

  test.each(kindDefinitions.map(({ kind }) => [kind.kind, kind] as const))(
    'kubectl finds what it looks for of %s',
    (_name, { group, version, kind }) => {
      const wanted = { group, version, kind }
      expect(Object.values(v2.definitions)).toContainEqual(
        expect.objectContaining({ 'x-kubernetes-group-version-kind': [wanted] }),
      )
      const patches = Object.values(v2.paths).flatMap(({ patch }) => patch ?? [])
      const found = patches.find((patch) => {
        const described = patch['x-kubernetes-group-version-kind']
        return JSON.stringify(described) === JSON.stringify(wanted)
      })
      expect(found?.consumes).toContain('application/strategic-merge-patch+json')
      expect(found?.parameters?.map(({ name }) => name)).toEqual(
        expect.arrayContaining(['body', 'dryRun', 'fieldValidation']),
      )
    },
  )

  test('an operation has its body among its parameters', () => {
    expect(v2.paths['/api/v1/namespaces/{namespace}/configmaps/{name}']?.put).toEqual({
      operationId: 'replaceCoreV1NamespacedConfigMap',
      tags: ['core_v1'],
      consumes: ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf'],
      produces: ['application/json', 'application/yaml'],
      schemes: ['https'],
      parameters: [
        {
          name: 'body',
          in: 'body',
          required: true,
          schema: { $ref: '#/definitions/io.k8s.api.core.v1.ConfigMap' },
        },
        ...['dryRun', 'fieldManager', 'fieldValidation'].map((name) => ({
          name,
          in: 'query',
          type: 'string',
          uniqueItems: true,
        })),
      ],
      responses: {
        '200': {
          description: 'OK',
          schema: { $ref: '#/definitions/io.k8s.api.core.v1.ConfigMap' },
        },
        '401': { description: 'Unauthorized' },
      },
      'x-kubernetes-action': 'put',
      'x-kubernetes-group-version-kind': { group: '', version: 'v1', kind: 'ConfigMap' },
    })
  })

  test('a path that is no resource is in it', () => {
    expect(v2.paths['/openid/v1/jwks/']?.get).toMatchObject({
      produces: ['application/jwk-set+json'],
      responses: { '200': { schema: { type: 'string' } } },
    })
  })
})

describe('in protobuf [GND-R65]', () => {
  const small = {
    ...v2,
    paths: {},
    definitions: { Aa: { type: 'object', properties: { b: { type: 'string' } } } },
    securityDefinitions: {},
    security: [],
  }

  test('a document is the message of gnostic', () => {
    const bytes = encodeSwagger(small)
    const hex = (text: string) => Buffer.from(text).toString('hex')
    expect(bytes.toString('hex')).toBe(
      [
        `0a03${hex('2.0')}`,
        `12140a09${hex('Sallyport')}1207${hex('v1.36.3')}`,
        '4200', // no paths
        `4a280a260a02${hex('Aa')}1220`, // definitions, the first of them
        `b201080a06${hex('object')}`,
        `ca01120a100a01${hex('b')}120b`, // its properties, the first of them
        `b201080a06${hex('string')}`,
        '6a00', // no way to log in
      ].join(''),
    )
  })

  test('everything that is served has a place in it', () => {
    expect(encodeSwagger(v2).length).toBeGreaterThan(100_000)
  })

  test('what has no place in it is a mistake and not left out', () => {
    const schema = { type: 'object', title: 'T' }
    expect(() => encodeSwagger({ ...small, definitions: { Aa: schema } })).toThrow('title')
    const parameters = [{ name: 'x', in: 'header', type: 'string', uniqueItems: true }]
    const paths = { '/': { parameters } } as unknown as typeof v2.paths
    expect(() => encodeSwagger({ ...small, paths })).toThrow('a parameter cannot be in header')
  })
})

import { expect, test } from 'vitest'
import { readProxiedPath } from './proxied-path.ts'

const base = '/api/v1/namespaces/ns/services'

test.each([
  [`${base}/dash/proxy/a/b`, `${base}/dash/proxy`, '/a/b', { name: 'dash' }],
  [`${base}/dash/proxy`, `${base}/dash/proxy`, '', { name: 'dash' }],
  [`${base}/dash:web/proxy/`, `${base}/dash:web/proxy`, '/', { name: 'dash', port: 'web' }],
  [
    `${base}/https:dash:/proxy/`,
    `${base}/https:dash:/proxy`,
    '/',
    { name: 'dash', scheme: 'https' },
  ],
  ['/api/v1/proxy/namespaces/ns/services/dash/x', `${base}/dash/proxy`, '/x', { name: 'dash' }],
  ['/api/v1/proxy/namespaces/ns/services/dash', `${base}/dash/proxy`, '', { name: 'dash' }],
])('[CRED-P9] %s is the path to a service', (path, prefix, rest, service) => {
  expect(readProxiedPath(path)).toEqual({
    prefix,
    rest,
    service: { namespace: 'ns', ...service },
  })
})

test.each([
  ['/api/v1/namespaces/ns/pods/p/proxy/x', '/api/v1/namespaces/ns/pods/p/proxy'],
  ['/api/v1/nodes/n/proxy/metrics', '/api/v1/nodes/n/proxy'],
  ['/api/v1/proxy/nodes/n/metrics', '/api/v1/nodes/n/proxy'],
  ['/api/v1/namespaces/ns/services/a:b:c:d/proxy/', `${base}/a:b:c:d/proxy`],
  ['/api/v1/namespaces/ns/services/ftp:a:1/proxy/', `${base}/ftp:a:1/proxy`],
])('%s is proxied, but to no service that has an address of its own', (path, prefix) => {
  const found = readProxiedPath(path)
  expect(found?.prefix).toBe(prefix)
  expect(found?.service).toBeUndefined()
})

test.each([
  '/api/v1/namespaces/ns/services/dash',
  '/api/v1/namespaces/ns/services/dash/status',
  '/api/v1/namespaces/ns/services/dash/proxyx',
  '/apis/apps/v1/namespaces/ns/services/dash/proxy',
  '/x/api/v1/namespaces/ns/services/dash/proxy',
])('%s is not proxied', (path) => expect(readProxiedPath(path)).toBeUndefined())

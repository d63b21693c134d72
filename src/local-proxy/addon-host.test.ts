import { describe, expect, test } from 'vitest'
import { addonHostOf, readAddonHost } from './addon-origin.ts'
import { type ServiceId, servicePrefix } from './proxied-path.ts'

const host = (name: string) => ({ name, authority: name })

describe("an add-on's own host", () => {
  test.each([
    ['dash.kube-system.localhost', 'dash'],
    ['http.dash.kube-system.localhost', 'dash:http'],
    ['8080.dash.kube-system.localhost', 'dash:8080'],
    ['https.dash.kube-system.localhost', 'https:dash:https'],
    ['443.dash.kube-system.localhost', 'https:dash:443'],
    ['web-https.dash.kube-system.localhost', 'https:dash:web-https'],
    ['http.443.dash.kube-system.localhost', 'http:dash:443'],
    ['https.9000.dash.kube-system.localhost', 'https:dash:9000'],
  ])('%s leads to %s', (name, id) => {
    const service = readAddonHost(host(name))
    expect(service && servicePrefix(service)).toBe(
      `/api/v1/namespaces/kube-system/services/${id}/proxy`,
    )
  })

  test.each(['localhost', '127.0.0.1', '[::1]', 'dash.kube-system.example.com'])(
    '%s is none',
    (name) => expect(readAddonHost(host(name))).toBeUndefined(),
  )

  test.each([
    'dash.localhost',
    '.localhost',
    'a..localhost',
    '-a.b.localhost',
    'a_b.c.localhost',
    'ftp.80.dash.ns.localhost',
    'x.http.80.dash.ns.localhost',
    `${'a'.repeat(64)}.ns.localhost`,
  ])('%s is refused', (name) => {
    expect(() => readAddonHost(host(name))).toThrow('no address of an add-on')
  })

  test.each<ServiceId>([
    { namespace: 'ns', name: 'a' },
    { namespace: 'ns', name: 'a', port: 'web' },
    { namespace: 'ns', name: 'a', port: '80' },
    { namespace: 'ns', name: 'a', port: '443', scheme: 'https' },
    { namespace: 'ns', name: 'a', port: 'web', scheme: 'https' },
  ])('is made of a service and read as the same one: %o', (service) => {
    expect(readAddonHost(host(addonHostOf(service) ?? ''))).toEqual(service)
  })

  test('cannot tell a scheme without a port', () => {
    expect(addonHostOf({ namespace: 'ns', name: 'a', scheme: 'https' })).toBeUndefined()
  })
})

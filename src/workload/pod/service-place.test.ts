import { describe, expect, test } from 'vitest'
import type { KubeObject } from '../../core/index.ts'
import type { WorkloadPort } from './pod-object.ts'
import { placeInService } from './service-endpoint.ts'

const service = (spec: object): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', namespace: 'shop' },
  spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8080 }], ...spec },
})

const place = (found: KubeObject | undefined, ...ports: WorkloadPort[]) =>
  placeInService(
    { get: async () => found },
    { namespace: 'shop', name: 'web' },
    ports,
    new AbortController().signal,
  )

const named = { ports: [{ port: 80, targetPort: 'http' }] }
const two = {
  ports: [
    { port: 80, targetPort: 'http' },
    { port: 81, targetPort: 'admin' },
  ],
}

describe('an endpoint of a Service [ISS-W1]', () => {
  test.each<[string, object, WorkloadPort[], WorkloadPort[]]>([
    ['by number', {}, [{ port: 8080 }], [{ port: 8080 }]],
    ['by name', named, [{ port: 3000 }], [{ name: 'http', port: 3000 }]],
    ['by a name of its own', named, [{ name: 'http', port: 3000 }], [{ name: 'http', port: 3000 }]],
    [
      'by names in their order',
      two,
      [{ port: 3000 }, { port: 3001 }],
      [
        { name: 'http', port: 3000 },
        { name: 'admin', port: 3001 },
      ],
    ],
    [
      'where one port was given its name',
      two,
      [{ name: 'admin', port: 1 }, { port: 2 }],
      [
        { name: 'admin', port: 1 },
        { name: 'http', port: 2 },
      ],
    ],
    ['with a port beside', {}, [{ port: 8080 }, { port: 9 }], [{ port: 8080 }, { port: 9 }]],
    ['without targetPort', { ports: [{ port: 80 }] }, [{ port: 80 }], [{ port: 80 }]],
  ])('%s', async (_how, spec, given, expected) => {
    const found = await place(service(spec), ...given)
    expect(found).toEqual({ labels: { app: 'web' }, ports: expected })
  })

  test.each<[string, KubeObject | undefined, string, RegExp]>([
    ['no Service', undefined, 'NO_SERVICE', /kubectl create service clusterip web --tcp=80:3000/],
    ['no selector', service({ selector: {} }), 'SERVICE_SELECTS_NOTHING', /selects Pods by labels/],
    ['another port', service({}), 'PORT_NOT_IN_SERVICE', /--port 8080/],
  ])('%s is refused with what to do', async (_what, found, code, hint) => {
    await expect(place(found, { port: 3000 })).rejects.toMatchObject({
      code,
      hint: expect.stringMatching(hint),
    })
  })
})

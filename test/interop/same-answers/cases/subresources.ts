import { cases, del, get, media, patch, post, put, type Topic } from '../ask.ts'
import { collectionOf, configMaps, objectOf, storedKind } from '../kinds.ts'
import { bodyOf } from '../reading.ts'

type Fields = Record<string, unknown>
const made = (kind: string, name: string, content = storedKind(kind).least) =>
  post(collectionOf(storedKind(kind)), objectOf(storedKind(kind), name, content))
const at = (kind: string, name: string, subresource: string): string =>
  `${collectionOf(storedKind(kind))}/${name}/${subresource}`

const condition = (type: string, more: Fields = {}) => ({
  type,
  status: 'True',
  reason: 'Because',
  message: 'of this',
  ...more,
})

/** `status`, `approval`, `finalize` and those that do not exist. */
export const subresources: Topic = {
  name: 'subresources',
  cases: cases({
    'status of a Pod': [
      made('Pod', 'status'),
      get(at('Pod', 'status', 'status')),
      (seen) =>
        put(at('Pod', 'status', 'status'), {
          ...bodyOf(seen[0]),
          metadata: { ...(bodyOf(seen[0])['metadata'] as Fields), labels: { via: 'status' } },
          spec: { containers: [{ name: 'other', image: 'x' }] },
          status: { phase: 'Running', podIP: '10.1.2.3', hostIP: '192.0.2.1' },
        }),
      patch(at('Pod', 'status', 'status'), media.strategicPatch, {
        status: { conditions: [{ type: 'Ready', status: 'True' }] },
      }),
      patch(at('Pod', 'status', 'status'), media.strategicPatch, {
        status: { conditions: [{ type: 'Initialized', status: 'True' }] },
      }),
      patch(at('Pod', 'status', 'status'), media.mergePatch, { spec: { nodeName: 'x' } }),
      (seen) => put(at('Pod', 'status', 'status'), bodyOf(seen[0])),
      put(`${collectionOf(storedKind('Pod'))}/status`, {
        ...objectOf(storedKind('Pod'), 'status', storedKind('Pod').least),
        status: { phase: 'Failed' },
      }),
      get(`${collectionOf(storedKind('Pod'))}/status`),
    ],
    'a wrong status of a Pod': [
      made('Pod', 'wrong-status'),
      patch(at('Pod', 'wrong-status', 'status'), media.mergePatch, {
        status: {
          phase: 'Dreaming',
          podIPs: [{ ip: 'x' }],
          conditions: [{ type: '', status: '' }],
        },
      }),
      patch(at('Pod', 'wrong-status', 'status'), media.mergePatch, { status: { podIP: 'x' } }),
    ],
    'status of a Node': [
      made('Node', 'same-status'),
      patch(at('Node', 'same-status', 'status'), media.strategicPatch, {
        metadata: { labels: { via: 'status' } },
        spec: { unschedulable: true },
        status: {
          capacity: { cpu: '4', memory: '8Gi' },
          conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }],
          addresses: [{ type: 'InternalIP', address: '192.0.2.1' }],
        },
      }),
      get(`${collectionOf(storedKind('Node'))}/same-status`),
      patch(at('Node', 'same-status', 'status'), media.mergePatch, {
        status: { capacity: { cpu: 'many' } },
      }),
    ],
    'status of a Service': [
      made('Service', 'status'),
      patch(at('Service', 'status', 'status'), media.mergePatch, {
        spec: { selector: { a: 'b' } },
        status: {
          loadBalancer: { ingress: [{ ip: '192.0.2.1' }] },
          conditions: [condition('Ready', { lastTransitionTime: '2026-01-02T03:04:05Z' })],
        },
      }),
      patch(at('Service', 'status', 'status'), media.mergePatch, {
        status: { conditions: [condition('Not Valid')] },
      }),
    ],
    'status of a Namespace': [
      made('Namespace', 'same-status'),
      patch(at('Namespace', 'same-status', 'status'), media.mergePatch, {
        status: { conditions: [condition('Odd')] },
      }),
      patch(at('Namespace', 'same-status', 'status'), media.mergePatch, {
        status: { phase: 'Terminating' },
      }),
      get('/api/v1/namespaces/same-status/status'),
    ],
    'finalize of a Namespace': [
      made('Namespace', 'same-finalize'),
      put('/api/v1/namespaces/same-finalize/finalize', {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: 'same-finalize', labels: { via: 'finalize' } },
        spec: { finalizers: ['kubernetes', 'example.com/mine'] },
      }),
      put('/api/v1/namespaces/same-finalize/finalize', {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: 'same-finalize' },
        spec: { finalizers: ['Not Valid'] },
      }),
      put('/api/v1/namespaces/same-finalize', {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: 'same-finalize' },
        spec: { finalizers: [] },
      }),
      get('/api/v1/namespaces/same-finalize/finalize'),
      patch('/api/v1/namespaces/same-finalize/finalize', media.mergePatch, {}),
      get('/api/v1/namespaces/same-finalize'),
    ],
    'approval of a request': [
      made('CertificateSigningRequest', 'same-approved'),
      (seen) =>
        put(at('CertificateSigningRequest', 'same-approved', 'approval'), {
          ...bodyOf(seen[0]),
          status: { conditions: [condition('Approved')], certificate: 'eA==' },
        }),
      (seen) =>
        put(at('CertificateSigningRequest', 'same-approved', 'approval'), {
          ...bodyOf(seen[1]),
          status: { conditions: [] },
        }),
      (seen) =>
        put(at('CertificateSigningRequest', 'same-approved', 'approval'), {
          ...bodyOf(seen[1]),
          status: { conditions: [condition('Approved'), condition('Denied')] },
        }),
      patch(at('CertificateSigningRequest', 'same-approved', 'approval'), media.mergePatch, {
        status: { conditions: [condition('Approved', { status: 'False' })] },
      }),
      get(at('CertificateSigningRequest', 'same-approved', 'approval')),
      patch(at('CertificateSigningRequest', 'same-approved', 'status'), media.mergePatch, {
        status: { certificate: 'bm90IGEgY2VydGlmaWNhdGU=' },
      }),
      patch(at('CertificateSigningRequest', 'same-approved', 'status'), media.mergePatch, {
        status: { conditions: [condition('Failed')] },
      }),
    ],
    'denial of a request': [
      made('CertificateSigningRequest', 'same-denied'),
      patch(at('CertificateSigningRequest', 'same-denied', 'approval'), media.strategicPatch, {
        status: { conditions: [condition('Denied')] },
      }),
      patch(at('CertificateSigningRequest', 'same-denied', 'approval'), media.strategicPatch, {
        status: { conditions: [condition('Approved')] },
      }),
      patch(at('CertificateSigningRequest', 'same-denied', 'approval'), media.jsonPatch, [
        { op: 'add', path: '/spec/usages/0', value: 'server auth' },
      ]),
    ],
    'wrong conditions of a request': [
      made('CertificateSigningRequest', 'same-conditions'),
      patch(at('CertificateSigningRequest', 'same-conditions', 'approval'), media.mergePatch, {
        status: {
          conditions: [condition(''), condition('A', { status: '' }), condition('A')],
        },
      }),
    ],
    'a request without what it needs': post(
      collectionOf(storedKind('CertificateSigningRequest')),
      objectOf(storedKind('CertificateSigningRequest'), 'same-empty', {}),
    ),
    'status of kinds without one': [
      get(at('ConfigMap', 'x', 'status')),
      get(at('Secret', 'x', 'status')),
      put(at('Lease', 'x', 'status'), objectOf(storedKind('Lease'), 'x', {})),
      get(at('Role', 'x', 'status')),
    ],
    'subresources that do not exist': [
      get(`${configMaps}/x/nonsense`),
      get(at('Pod', 'x', 'nonsense')),
      del(at('Pod', 'x', 'status')),
      post(at('Pod', 'x', 'status'), {}),
      get(`${configMaps}/x/y/z`),
    ],
    'status of what is not there': [
      get(at('Pod', 'none', 'status')),
      put(
        at('Pod', 'none', 'status'),
        objectOf(storedKind('Pod'), 'none', storedKind('Pod').least),
      ),
      patch(at('Pod', 'none', 'status'), media.mergePatch, {}),
    ],
    'status in other forms': [
      made('Pod', 'status-forms'),
      get(at('Pod', 'status-forms', 'status'), { accept: media.metadata }),
    ],
    'scale and others of a Service': [
      get(at('Service', 'x', 'scale')),
      get(at('ConfigMap', 'x', 'scale')),
    ],
  }),
}

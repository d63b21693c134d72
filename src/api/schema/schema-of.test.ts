import { describe, expect, test } from 'vitest'
import { kinds } from './generated/tables.ts'
import { schemaOf, structByName } from './schema-of.ts'

const core = (kind: string) => schemaOf({ group: '', version: 'v1', kind })!

describe('facts of the published modules [GND-R61]', () => {
  test.each([
    ['core/v1.ObjectMeta-like names', 'meta/v1.ObjectMeta', 'resourceVersion', 6, 'string'],
    [
      'a field that is late in Go and early on the wire',
      'core/v1.PodSpec',
      'initContainers',
      20,
      'object',
    ],
    ['a map of bytes', 'core/v1.Secret', 'data', 2, 'bytes'],
    ['a map of quantities', 'core/v1.NodeStatus', 'capacity', 1, 'quantity'],
    ['a port or its name', 'core/v1.ServicePort', 'targetPort', 4, 'intOrString'],
    ['a time with microseconds', 'coordination/v1.LeaseSpec', 'renewTime', 4, 'microtime'],
    ['a plain time', 'core/v1.Event', 'firstTimestamp', 6, 'time'],
    [
      'the bytes of a signing request',
      'certificates/v1.CertificateSigningRequestSpec',
      'request',
      1,
      'bytes',
    ],
    ['free JSON', 'meta/v1.ManagedFieldsEntry', 'fieldsV1', 7, 'any'],
  ])('%s', (_name, struct, field, number, type) => {
    expect(structByName(struct).field(field)).toMatchObject({ number, type })
  })

  test('every struct that a kind can reach is in the tables', () => {
    const seen = new Set<string>()
    const visit = (name: string) => {
      if (seen.has(name)) return
      seen.add(name)
      for (const field of structByName(name).fields())
        if (field.struct !== undefined) visit(field.struct.name)
    }
    for (const name of Object.values(kinds)) visit(name)
    expect(seen.size).toBeGreaterThan(200)
  })
})

describe('fields', () => {
  test('an inlined struct lies flat, and says where it comes from', () => {
    const volume = structByName('core/v1.Volume')
    expect(volume.field('hostPath')).toMatchObject({ embeddedIn: ['VolumeSource'] })
    expect(volume.field('VolumeSource')).toBeUndefined()
    expect(volume.inlined).toMatchObject([{ number: 2 }])
    expect(volume.fieldByNumber(2)).toBeUndefined()
  })

  test('kind and apiVersion come first, as Kubernetes writes them', () => {
    const names = Array.from(core('ConfigMap').fields(), (field) => field.jsonName)
    expect(names).toEqual(['kind', 'apiVersion', 'metadata', 'immutable', 'data', 'binaryData'])
  })

  test.each([
    ['core/v1.PodSpec', 'containers', 'name', ['merge']],
    ['core/v1.PodSpec', 'volumes', 'name', ['merge', 'retainKeys']],
    ['core/v1.ServiceSpec', 'ports', 'port', ['merge']],
    ['meta/v1.ObjectMeta', 'finalizers', undefined, ['merge']],
    ['core/v1.PodSpec', 'tolerations', undefined, []],
  ])('%s.%s merges by %s', (struct, field, mergeKey, patchStrategy) => {
    expect(structByName(struct).field(field)).toMatchObject({ mergeKey, patchStrategy })
  })

  test.each([
    ['meta/v1.ObjectMeta', 'uid', 'types.UID'],
    ['meta/v1.ObjectMeta', 'labels', 'map[string]string'],
    ['core/v1.PodSpec', 'containers', '[]v1.Container'],
    ['core/v1.PodSpec', 'overhead', 'v1.ResourceList'],
    ['core/v1.Secret', 'data', 'map[string][]uint8'],
    ['core/v1.PodSpec', 'securityContext', 'v1.PodSecurityContext'],
    ['authentication/v1.UserInfo', 'extra', 'map[string]v1.ExtraValue'],
  ])('the Go type of %s.%s is %s', (struct, field, goType) => {
    expect(structByName(struct).field(field)).toMatchObject({ goType })
  })

  test('a map of string lists is both a map and a list', () => {
    expect(structByName('authentication/v1.UserInfo').field('extra')).toMatchObject({
      map: true,
      list: true,
      wrapped: true,
      type: 'string',
    })
  })
})

describe('kinds', () => {
  test.each(['DeleteOptions', 'ListOptions', 'WatchEvent'])('%s is in every group', (kind) => {
    expect(schemaOf({ group: 'coordination.k8s.io', version: 'v1', kind })?.shortName).toBe(kind)
    expect(schemaOf({ group: 'made.up', version: 'v1', kind })).toBeUndefined()
  })

  test.each([
    ['', 'v2', 'ConfigMap'],
    ['apps', 'v1', 'Deployment'],
    ['__proto__', 'v1', 'toString'],
  ])('%s/%s %s is not served', (group, version, kind) => {
    expect(schemaOf({ group, version, kind })).toBeUndefined()
  })
})

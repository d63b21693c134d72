import { describe, expect, test } from 'vitest'
import type { KubeObject } from '../../../core/index.ts'
import { toCause } from '../../validation/index.ts'
import { ServiceIps } from './ips.ts'

const service = (spec: object): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 's', namespace: 'default' },
  spec: { type: 'ClusterIP', selector: { a: 'b' }, ...spec },
})

const specOf = (object: KubeObject) => object['spec'] as Record<string, unknown>
const dual = () => new ServiceIps(['10.0.0.0/24', 'fd00::/112'])

describe('addresses of Services [GND-R48]', () => {
  test('a Service gets an address of the first range', () => {
    const draft = service({})
    const { problems, taken } = new ServiceIps(['10.0.0.0/24']).assign(draft)
    expect(problems).toEqual([])
    expect(specOf(draft)).toMatchObject({ ipFamilies: ['IPv4'], ipFamilyPolicy: 'SingleStack' })
    expect(specOf(draft)['clusterIPs']).toEqual(taken)
    expect(specOf(draft)['clusterIP']).toBe(taken[0])
  })

  test('no two Services get the same address', () => {
    const ips = new ServiceIps(['10.0.0.0/28'])
    const given = Array.from({ length: 13 }, () => ips.assign(service({})).taken[0])
    expect(new Set(given).size).toBe(13)
    expect(ips.assign(service({})).problems.map(toCause)[0]?.message).toBe(
      'Invalid value: []: failed to allocate IP: range is full',
    )
  })

  test('the first address is for Service default/kubernetes only, even when that is gone', () => {
    const ips = new ServiceIps(['10.0.0.0/24'])
    const asked = { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1'] }
    const { problems } = ips.assign(service(asked))
    expect(problems.map(toCause)[0]?.message).toContain('provided IP is already allocated')
    const own = service(asked)
    own.metadata.name = 'kubernetes'
    expect(ips.assign(own)).toEqual({ problems: [], taken: ['10.0.0.1'], freed: [] })
  })

  test('a change keeps the address and takes none', () => {
    const ips = dual()
    const stored = service({})
    ips.assign(stored)
    const draft = structuredClone(stored)
    expect(ips.assign(draft, stored)).toEqual({ problems: [], taken: [], freed: [] })
    expect(draft).toEqual(stored)
  })

  test('an alias gives its address back', () => {
    const ips = dual()
    const stored = service({})
    const { taken } = ips.assign(stored)
    const alias = service({ type: 'ExternalName', externalName: 'example.com' })
    expect(ips.assign(alias, stored)).toEqual({ problems: [], taken: [], freed: taken })
  })

  test('both families are given where both are wanted', () => {
    const draft = service({ ipFamilyPolicy: 'PreferDualStack' })
    const { taken } = dual().assign(draft)
    expect(specOf(draft)['ipFamilies']).toEqual(['IPv4', 'IPv6'])
    expect(taken).toHaveLength(2)
  })

  test('the second address can be given back', () => {
    const ips = dual()
    const stored = service({ ipFamilyPolicy: 'RequireDualStack' })
    const { taken } = ips.assign(stored)
    const draft = structuredClone(stored)
    specOf(draft)['ipFamilyPolicy'] = 'SingleStack'
    expect(ips.assign(draft, stored)).toEqual({ problems: [], taken: [], freed: [taken[1]] })
    expect(specOf(draft)['clusterIPs']).toEqual([taken[0]])
  })

  test('a refusal reserves nothing', () => {
    const ips = dual()
    ips.adopt(service({ clusterIPs: ['fd00::9'] }))
    const wanted = { clusterIP: '10.0.0.9', clusterIPs: ['10.0.0.9', 'fd00::9'] }
    const refused = ips.assign(service({ ...wanted, ipFamilyPolicy: 'RequireDualStack' }))
    expect(refused.problems).toHaveLength(1)
    const free = { clusterIP: '10.0.0.9', clusterIPs: ['10.0.0.9'] }
    expect(ips.assign(service(free)).problems).toEqual([])
  })

  test('what a stored Service holds is not given away after a restart', () => {
    const ips = dual()
    ips.adopt(service({ clusterIPs: ['10.0.0.9'] }))
    const wanted = service({ clusterIP: '10.0.0.9', clusterIPs: ['10.0.0.9'] })
    expect(ips.assign(wanted).problems.map(toCause)[0]?.message).toBe(
      'Invalid value: ["10.0.0.9"]: failed to allocate IP 10.0.0.9: provided IP is already allocated',
    )
    ips.release(['10.0.0.9'])
    expect(ips.assign(wanted).problems).toEqual([])
  })
})

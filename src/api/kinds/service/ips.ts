import type { KubeObject } from '../../../core/index.ts'
import { type FieldProblem, invalidValue, problemsOfEach } from '../../validation/field-problem.ts'
import { ensureFields, type Fields, fieldsAt, setDefault, textAt, textsAt } from '../fields.ts'
import { createIpAllocator, type IpAllocator } from './ip-allocator.ts'
import { clusterIpProblems, isHeadless, needsClusterIp, sameTexts } from './ip-rules.ts'

/** What happened to the addresses of a Service that is about to be stored. */
export interface Assignment {
  /** When there are any, nothing was reserved and the Service must be refused. */
  readonly problems: FieldProblem[]
  /** Reserved now; to be released if the Service is not stored after all. */
  readonly taken: string[]
  /** No longer needed; to be released once the Service is stored. */
  readonly freed: string[]
}

const otherFamily: Readonly<Record<string, string>> = { IPv4: 'IPv6', IPv6: 'IPv4' }
const policyField = 'spec.ipFamilyPolicy'

/** The cluster addresses of Services, from one range or from one of each family. */
export class ServiceIps {
  readonly #allocators: ReadonlyMap<string, IpAllocator>
  readonly #primary: string

  constructor(cidrs: readonly [string, ...string[]]) {
    const [first, ...rest] = cidrs
    const primary = createIpAllocator(first)
    this.#primary = primary.family
    this.#allocators = new Map(
      [primary, ...rest.map((cidr) => createIpAllocator(cidr))].map((allocator) => [
        allocator.family,
        allocator,
      ]),
    )
  }

  /** Completes families and addresses in place. */
  assign(draft: KubeObject, stored?: KubeObject): Assignment {
    const old = stored ? fieldsAt(stored, 'spec') : undefined
    const held = old && needsClusterIp(old) ? textsAt(old, 'clusterIPs').filter(isAddress) : []
    const spec = ensureFields(draft, 'spec')
    if (!needsClusterIp(spec)) return { problems: [], taken: [], freed: held }
    const problems = this.#settleFamilies(spec, old)
    if (problems.length > 0) return { problems, taken: [], freed: [] }
    return this.#reserve(spec, held, isApiService(draft))
  }

  /** Reserves what an existing Service holds, for example after a restart. */
  adopt(object: KubeObject): void {
    for (const ip of textsAt(fieldsAt(object, 'spec'), 'clusterIPs')) {
      for (const allocator of this.#allocators.values()) allocator.take(ip)
    }
  }

  /** Gives addresses back. */
  release(ips: readonly string[]): void {
    for (const ip of ips) for (const allocator of this.#allocators.values()) allocator.release(ip)
  }

  #settleFamilies(spec: Fields, old: Fields | undefined): FieldProblem[] {
    const isOpen = isHeadless(spec) && Object.keys(fieldsAt(spec, 'selector')).length === 0
    setDefault(
      spec,
      'ipFamilyPolicy',
      (old && textAt(old, 'ipFamilyPolicy')) || (isOpen ? 'RequireDualStack' : 'SingleStack'),
    )
    const spelling = clusterIpProblems(spec)
    if (spelling.length > 0) return spelling
    if (old) this.#narrow(spec, old)
    const problems = [...countProblems(spec, old), ...this.#inferFamilies(spec)]
    if (problems.length > 0) return problems
    if (isOpen) this.#addFamilies(spec, 2)
    else {
      problems.push(...this.#configuredProblems(spec))
      if (problems.length === 0) this.#addFamilies(spec, this.#allocators.size)
    }
    return problems
  }

  /** A policy of SingleStack with nothing else changed means: give the second address back. */
  #narrow(spec: Fields, old: Fields): void {
    if (textAt(spec, 'ipFamilyPolicy') !== 'SingleStack') return
    for (const list of ['clusterIPs', 'ipFamilies']) {
      const values = textsAt(spec, list)
      if (values.length > 1 && sameTexts(values, textsAt(old, list)))
        spec[list] = values.slice(0, 1)
    }
  }

  #inferFamilies(spec: Fields): FieldProblem[] {
    const ips = textsAt(spec, 'clusterIPs')
    const families = textsAt(spec, 'ipFamilies')
    const problems: FieldProblem[] = []
    ips.filter(isAddress).forEach((ip, index) => {
      if (index < families.length) return
      const family = ip.includes(':') ? 'IPv6' : 'IPv4'
      if (this.#allocators.has(family)) families.push(family)
      else {
        const words = `${family} is not configured on this cluster`
        problems.push(invalidValue(`spec.clusterIPs[${index}]`, ips, words))
      }
    })
    if (families.length > 0) spec['ipFamilies'] = families
    return problems
  }

  #configuredProblems(spec: Fields): FieldProblem[] {
    const policy = textAt(spec, 'ipFamilyPolicy')
    const problems = problemsOfEach(textsAt(spec, 'ipFamilies'), (family, index) =>
      this.#allocators.has(family)
        ? []
        : [invalidValue(`spec.ipFamilies[${index}]`, family, 'not configured on this cluster')],
    )
    if (policy !== 'RequireDualStack' || this.#allocators.size > 1) return problems
    const words = 'this cluster is not configured for dual-stack services'
    return [invalidValue(policyField, policy, words), ...problems]
  }

  #addFamilies(spec: Fields, most: number): void {
    const families = textsAt(spec, 'ipFamilies')
    const [first = this.#primary, second] = families
    const wantsBoth = textAt(spec, 'ipFamilyPolicy') !== 'SingleStack' && most > 1
    const other = second ?? (wantsBoth ? otherFamily[first] : undefined)
    spec['ipFamilies'] = other === undefined ? [first] : [first, other]
  }

  #reserve(spec: Fields, held: readonly string[], isApi: boolean): Assignment {
    if (isHeadless(spec)) return { problems: [], taken: [], freed: [...held] }
    const asked = textsAt(spec, 'clusterIPs')
    const taken: string[] = []
    const ips: string[] = []
    for (const [index, family] of textsAt(spec, 'ipFamilies').entries()) {
      const ip = asked[index]
      const got = ip && held.includes(ip) ? ip : this.#reserveOne(family, ip, isApi)
      if (typeof got !== 'string') {
        this.release(taken)
        return {
          problems: [invalidValue('spec.clusterIPs', asked, got.words)],
          taken: [],
          freed: [],
        }
      }
      if (got !== ip || !held.includes(ip)) taken.push(got)
      ips.push(got)
    }
    spec['clusterIP'] = ips[0]
    spec['clusterIPs'] = ips
    return { problems: [], taken, freed: held.filter((ip) => !ips.includes(ip)) }
  }

  #reserveOne(
    family: string,
    ip: string | undefined,
    isApi: boolean,
  ): string | { readonly words: string } {
    const allocator = this.#allocators.get(family)
    if (!ip) return allocator?.allocate() ?? { words: 'failed to allocate IP: range is full' }
    const outcome = !isApi && allocator?.isKept(ip) ? 'taken' : allocator?.take(ip)
    const refused = `failed to allocate IP ${ip}:`
    if (outcome === 'taken') return { words: `${refused} provided IP is already allocated` }
    if (outcome === 'ok' || outcome === undefined) return ip
    return {
      words: `${refused} the provided IP (${ip}) is not in the valid range. The range of valid IPs is ${allocator?.cidr}`,
    }
  }
}

/** The Service of the API itself, whose address everybody in the cluster relies on. */
const isApiService = ({ metadata }: KubeObject): boolean =>
  metadata.namespace === 'default' && metadata.name === 'kubernetes'

const isAddress = (ip: string): boolean => ip !== '' && ip !== 'None'

function countProblems(spec: Fields, old: Fields | undefined): FieldProblem[] {
  const policy = textAt(spec, 'ipFamilyPolicy')
  const counts = [
    ['clusterIPs', 'cluster IP', 'cluster IPs'],
    ['ipFamilies', 'IP family', 'IP families'],
  ] as const
  return counts.flatMap(([list, one, many]) => {
    const count = textsAt(spec, list).length
    if (policy === 'SingleStack' && count > 1) {
      const words = `must be 'RequireDualStack' or 'PreferDualStack' when multiple ${many} are specified`
      return [invalidValue(policyField, policy, words)]
    }
    if (policy === 'SingleStack' || !old || count === 0 || count >= textsAt(old, list).length)
      return []
    return [
      invalidValue(policyField, policy, `must be 'SingleStack' to release the secondary ${one}`),
    ]
  })
}

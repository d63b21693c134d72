import { defineOptions, WrongUsage } from '../core/index.ts'

/** The gate of traffic from nodes to the control plane, by its name in the code and by that of the proposal. */
const knownGates: Readonly<Record<string, 'nodeToMasterTraffic'>> = {
  NodeToMasterTraffic: 'nodeToMasterTraffic',
  EnableClusterToMasterTraffic: 'nodeToMasterTraffic',
}

/** Which features are switched on. */
export interface FeatureGates {
  readonly nodeToMasterTraffic: boolean
}

/** Says what is wrong with one `NAME=true` of `--feature-gates`. */
export function checkFeatureGate(text: string): string | undefined {
  const [name = '', value, ...more] = text.split('=')
  if (!Object.hasOwn(knownGates, name)) {
    return `must name one of ${Object.keys(knownGates).join(', ')}`
  }
  const isGood = (value === 'true' || value === 'false') && more.length === 0
  return isGood ? undefined : 'must end in =true or =false'
}

/** Reads checked gates; the last word about one counts. */
export function readFeatureGates(texts: readonly string[]): FeatureGates {
  const gates = { nodeToMasterTraffic: false }
  for (const text of texts) {
    const [name = '', value] = text.split('=')
    const gate = knownGates[name]
    if (gate) gates[gate] = value === 'true'
  }
  return gates
}

const group = 'Logging'
const unused = 'accepted so that existing manifests work; our log goes to standard error'

/** The logging flags of Go programs: verbosity counts, the others are taken and have no effect. */
export const klogOptions = defineOptions({
  v: {
    type: 'integer',
    min: 0,
    max: 100,
    default: 4,
    short: 'v',
    env: 'SALLYPORT_TUNNEL_V',
    group,
    describe: 'verbosity as Konnectivity counts it; 5 and more log at debug level',
  },
  vmodule: { type: 'string', group, describe: unused },
  logtostderr: { type: 'boolean', default: true, group, describe: unused },
  alsologtostderr: { type: 'boolean', default: false, group, describe: unused },
  alsologtostderrthreshold: { type: 'string', group, describe: unused },
  stderrthreshold: { type: 'string', group, describe: unused },
  'legacy-stderr-threshold-behavior': { type: 'boolean', default: true, group, describe: unused },
  'log-backtrace-at': { type: 'string', group, describe: unused },
  'log-dir': { type: 'string', group, describe: unused },
  'log-file': { type: 'string', group, describe: unused },
  'log-file-max-size': { type: 'integer', default: 1_800, group, describe: unused },
  'add-dir-header': { type: 'boolean', default: false, group, describe: unused },
  'one-output': { type: 'boolean', default: false, group, describe: unused },
  'skip-headers': { type: 'boolean', default: false, group, describe: unused },
  'skip-log-headers': { type: 'boolean', default: false, group, describe: unused },
})

/** Throws WrongUsage with everything that is wrong with some options, if anything is. */
export function refuseProblems(problems: readonly string[]): void {
  const [first] = problems
  if (first === undefined) return
  if (problems.length === 1) throw new WrongUsage(first)
  const lines = problems.map((problem) => `  - ${problem}`)
  throw new WrongUsage(['several things are wrong:', ...lines].join('\n'))
}

import { defineOptions } from '../../core/index.ts'

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

export { type Admission, Budgets, type SessionKind } from './budgets.ts'
export { limitsOfService, type ProxyLimits } from './proxy-limits.ts'

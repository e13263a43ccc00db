import { ManualClock } from '../../../src/domain/time.ts';
import { createStore } from '../../../src/store/store.ts';
import { updateKey } from '../../../src/store/tenants/key-records.ts';

const [path = '', organizationId = '', keyId = ''] = process.argv.slice(2);
const store = createStore({ path, clock: new ManualClock(42) });
await store.write((db, now) => updateKey(db, organizationId, keyId, { status: 'inactive', disabledAt: now }, now));
process.stdout.write('disabled\n');
process.stdin.resume();

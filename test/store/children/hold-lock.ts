import { lockDataDir } from '../../../src/store/db/lock.ts';

lockDataDir(process.argv[2] ?? '');
process.stdout.write('locked\n');
process.stdin.resume();

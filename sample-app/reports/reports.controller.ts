import { Controller, Get } from '@nestjs/common';
import { REPLICA } from '../config/replica.js';
import { NightlyReportService } from './nightly-report.service.js';

@Controller('reports')
export class ReportsController {
  constructor(private readonly nightly: NightlyReportService) {}

  @Get()
  all() {
    return { replica: REPLICA, reports: this.nightly.reports, skipped: this.nightly.skipped };
  }
}
